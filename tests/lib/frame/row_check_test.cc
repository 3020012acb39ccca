#include "lib/frame/row_check.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tetrion {
namespace {

struct GoodRow {
  GoodRow() : layout({.record_bytes = 16, .lanes = 3, .has_mask = false}), bytes(layout.row_bytes) {
    view = RowView(layout, bytes.data());
    view.header->row = 7;
    for (int lane = 0; lane < 3; ++lane) view.cont[lane] = 1.0F;
  }
  const char* Check() const { return CheckRow(layout, bytes.data(), 7, 4); }

  RowLayout layout;
  std::vector<std::byte> bytes;
  RowView view;
};

TEST(RowCheckTest, AcceptsPlayingTerminatedAndTruncatedLanes) {
  GoodRow row;
  row.view.flags[0] = kIsFirst;
  row.view.flags[1] = kIsLast | kTerminated;
  row.view.cont[1] = 0.0F;
  row.view.flags[2] = kIsLast | kTruncated;
  EXPECT_EQ(row.Check(), nullptr);
}

TEST(RowCheckTest, NamesTheFirstThingWrong) {
  EXPECT_STREQ(CheckRow(GoodRow().layout, GoodRow().bytes.data(), 8, 4),
               "row number does not follow its predecessor");
  GoodRow action;
  action.view.action[2] = 4;
  EXPECT_STREQ(action.Check(), "action out of range");
  action.view.action[2] = -1;
  EXPECT_STREQ(action.Check(), "action out of range");
  GoodRow reward;
  reward.view.reward[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_STREQ(reward.Check(), "reward or log-probability not finite");
  GoodRow log_prob;
  log_prob.view.log_prob[2] = -std::numeric_limits<float>::infinity();
  EXPECT_STREQ(log_prob.Check(), "reward or log-probability not finite");
  GoodRow cut;
  cut.view.flags[1] = kTruncated;  // without kIsLast
  EXPECT_STREQ(cut.Check(), "flags or cont contradict each other");
  GoodRow flags;
  flags.view.flags[1] = kTerminated;  // without kIsLast
  flags.view.cont[1] = 0.0F;
  EXPECT_STREQ(flags.Check(), "flags or cont contradict each other");
  GoodRow cont;
  cont.view.cont[1] = 0.0F;  // without kTerminated
  EXPECT_STREQ(cont.Check(), "flags or cont contradict each other");
  GoodRow garbage;
  garbage.view.flags[0] = 0x10;  // the first bit that is no flag
  EXPECT_STREQ(garbage.Check(), "flags or cont contradict each other");
}

const char* SayNo(const std::byte*, std::int64_t n) {
  return n == 3 ? "no" : "another number of records";
}

TEST(RowCheckTest, RecordsAreJudgedByTheirKind) {
  GoodRow row;
  EXPECT_STREQ(CheckRow(row.layout, row.bytes.data(), 7, 4, SayNo), "no");
  const std::uint8_t flags[3] = {};
  EXPECT_STREQ(CheckSeen({.records = row.bytes.data(), .flags = flags}, 3, 4, SayNo), "no");
  EXPECT_EQ(CheckSeen({.records = row.bytes.data(), .flags = flags}, 3, 4, nullptr), nullptr);
}

TEST(RowCheckTest, LaneThatPlaysOnNeedsALegalActionAndNoOthers) {
  const std::uint8_t flags[2] = {0, kIsLast | kTerminated};
  const auto check = [&](std::uint64_t playing, std::uint64_t ended, std::int32_t actions) {
    const std::uint64_t masks[2] = {playing, ended};
    return CheckSeen({.flags = flags, .masks = masks}, 2, actions, nullptr);
  };
  EXPECT_EQ(check(0b1000, 0, 4), nullptr);
  EXPECT_EQ(check(0b0001, ~0ULL, 4), nullptr);
  EXPECT_STREQ(check(0, 1, 4), "a lane that plays on has no legal action");
  EXPECT_STREQ(check(0b10001, 1, 4), "a mask names an action that there is not");
  EXPECT_EQ(check(1ULL << 63, 1, 64), nullptr);
}

TEST(RowCheckTest, PairOfRowsMustAgreeOnWhereEpisodesEnd) {
  GoodRow before, after;
  EXPECT_EQ(CheckRowPair(before.layout, before.bytes.data(), after.bytes.data()), nullptr);
  after.view.episode_id[1] = 1;
  EXPECT_STREQ(CheckRowPair(before.layout, before.bytes.data(), after.bytes.data()),
               "is_first and episode_id do not move together");
  after.view.flags[1] = kIsFirst;
  EXPECT_STREQ(CheckRowPair(before.layout, before.bytes.data(), after.bytes.data()),
               "is_last and is_first do not pair up");
  before.view.flags[1] = kIsLast | kTruncated;
  EXPECT_EQ(CheckRowPair(before.layout, before.bytes.data(), after.bytes.data()), nullptr);
  before.view.cont[2] = 0.5F;
  EXPECT_STREQ(CheckRowPair(before.layout, before.bytes.data(), after.bytes.data()),
               "cont is neither 0 nor 1");
}

}  // namespace
}  // namespace tetrion
