#include "services/learner/boards.h"

#include <gtest/gtest.h>

namespace tetrion::learner {
namespace {

TEST(RingBoardTest, AListIsTakenOncePerChange) {
  RingBoard board;
  std::uint64_t seen = 0;
  std::vector<wire::RingInfo> rings;
  EXPECT_FALSE(board.TakeList(seen, rings));
  EXPECT_TRUE(board.Empty());
  board.SetList(7, {{.path = "/a", .slot = 3}});
  ASSERT_TRUE(board.TakeList(seen, rings));
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].slot, 3);
  EXPECT_EQ(board.revision(), 7U);
  EXPECT_FALSE(board.Empty());
  EXPECT_FALSE(board.TakeList(seen, rings));
}

TEST(RingBoardTest, TheSameRevisionSentAgainIsAChange) {
  // A restarted coordinator counts revisions anew.
  RingBoard board;
  std::uint64_t seen = 0;
  std::vector<wire::RingInfo> rings;
  board.SetList(1, {{.path = "/a"}});
  ASSERT_TRUE(board.TakeList(seen, rings));
  board.SetList(1, {{.path = "/b"}});
  ASSERT_TRUE(board.TakeList(seen, rings));
  EXPECT_EQ(rings.at(0).path, "/b");
}

TEST(RingBoardTest, AnEmptyListIsAListToo) {
  RingBoard board;
  std::uint64_t seen = 0;
  std::vector<wire::RingInfo> rings = {{.path = "/stale"}};
  board.SetList(1, {});
  ASSERT_TRUE(board.TakeList(seen, rings));
  EXPECT_TRUE(rings.empty());
  EXPECT_TRUE(board.Empty());
}

TEST(RingBoardTest, EndedRingsAreKeptUntilTheListLacksThem) {
  RingBoard board;
  board.AddEnded({.path = "/a", .end = wire::RingEnd::kOwnerDead});
  board.AddEnded({.path = "/b"});
  board.ForgetEndedExcept({{.path = "/a"}, {.path = "/c"}});
  ASSERT_EQ(board.Ended().size(), 1U);
  EXPECT_EQ(board.Ended()[0].path, "/a");
  EXPECT_EQ(board.Ended()[0].end, wire::RingEnd::kOwnerDead);
  board.ForgetEndedExcept({});
  EXPECT_TRUE(board.Ended().empty());
}

TEST(RingBoardTest, EndedRingIsNotTheRingThatALaterOwnerHasUnderItsPath) {
  const std::string a = wire::RemoteRingPath(5, 0), b = wire::RemoteRingPath(5, 1);
  RingBoard board;
  board.AddEnded({.path = a, .owner = 1});
  board.AddEnded({.path = b, .owner = 1});
  board.SetList(1, {{.path = a, .owner = 2}, {.path = b, .owner = 1}});
  EXPECT_FALSE(board.AllEnded());
  board.ForgetEndedExcept({{.path = a, .owner = 2}, {.path = b, .owner = 1}});
  ASSERT_EQ(board.Ended().size(), 1U);
  EXPECT_EQ(board.Ended()[0].path, b);
  board.SetList(2, {{.path = b, .owner = 1}});
  EXPECT_TRUE(board.AllEnded());
}

// The word of its end is on its way while its actor's next session claims it.
TEST(RingBoardTest, EndOfALocalRingIsItsEndForALaterOwnerToo) {
  RingBoard board;
  board.AddEnded({.path = "/a", .owner = 1});
  board.SetList(1, {{.path = "/a", .owner = 2}});
  EXPECT_TRUE(board.AllEnded());
  board.ForgetEndedExcept({{.path = "/a", .owner = 2}});
  ASSERT_EQ(board.Ended().size(), 1U) << "the list still has it";
  board.ForgetEndedExcept({});
  EXPECT_TRUE(board.Ended().empty());
}

TEST(RingBoardTest, ReasonsAreCutToWhatAMessageTakesAndStayPlainText) {
  RingBoard board;
  board.AddEnded({.path = "/a", .reason = std::string(wire::kMaxReasonBytes - 1, 'x') + "\u00e9y"});
  board.AddEnded({.path = "/b", .reason = "one line\nand more"});
  EXPECT_EQ(board.Ended()[0].reason, std::string(wire::kMaxReasonBytes - 1, 'x'));
  EXPECT_EQ(board.Ended()[1].reason, "one line");
}

}  // namespace
}  // namespace tetrion::learner
