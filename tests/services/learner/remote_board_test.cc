#include "services/learner/remote_board.h"

#include <gtest/gtest.h>

namespace tetrion::learner {
namespace {

constexpr RingSpec kSpec = {.capacity = 4, .record_bytes = 64, .spec_hash = 1};

std::shared_ptr<RemoteStream> MakeStream() {
  return std::make_shared<RemoteStream>(
      RingProducer::Create(Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(kSpec), 1,
                                                   kSpec.spec_hash, "ring"),
                           kSpec));
}

TEST(RemoteBoardTest, StreamIsTakenOnceAndOnlyWhereItsRingIsExpected) {
  RemoteBoard board;
  const auto stream = MakeStream();
  EXPECT_FALSE(board.Expects("a"));
  EXPECT_FALSE(board.Offer("a", stream));
  board.Expect("a");
  board.Expect("a");
  EXPECT_TRUE(board.Expects("a"));
  EXPECT_EQ(board.Take("a"), nullptr);
  ASSERT_TRUE(board.Offer("a", stream));
  EXPECT_FALSE(board.Expects("a")) << "it is open";
  EXPECT_EQ(board.Take("b"), nullptr);
  EXPECT_EQ(board.Take("a"), stream);
  EXPECT_EQ(board.Take("a"), nullptr);
  EXPECT_FALSE(stream->ended.load());
}

TEST(RemoteBoardTest, ForgottenRingEndsTheStreamThatWasOfferedForIt) {
  RemoteBoard board;
  const auto stream = MakeStream();
  board.Expect("a");
  ASSERT_TRUE(board.Offer("a", stream));
  board.Forget("a");
  board.Forget("b");
  EXPECT_TRUE(stream->ended.load());
  EXPECT_EQ(board.Take("a"), nullptr);
}

TEST(RemoteBoardTest, OwnerlessAreThePathsOfTheNewestList) {
  RemoteBoard board;
  EXPECT_FALSE(board.Ownerless("a"));
  board.SetOwnerless({"a", "b"});
  EXPECT_TRUE(board.Ownerless("a"));
  board.SetOwnerless({"b"});
  EXPECT_FALSE(board.Ownerless("a"));
  EXPECT_TRUE(board.Ownerless("b"));
}

TEST(RemoteBoardTest, RefusalStandsUntilTheRingIsForgotten) {
  RemoteBoard board;
  board.Refuse("a", "unknown");
  EXPECT_EQ(board.Refusal("a"), "");
  board.Expect("a");
  board.Refuse("a", "other rows");
  board.Expect("a");
  EXPECT_EQ(board.Refusal("a"), "other rows");
  board.Forget("a");
  EXPECT_EQ(board.Refusal("a"), "");
}

}  // namespace
}  // namespace tetrion::learner
