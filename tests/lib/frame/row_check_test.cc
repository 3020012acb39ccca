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
  GoodRow flags;
  flags.view.flags[1] = kTerminated;  // without kIsLast
  flags.view.cont[1] = 0.0F;
  EXPECT_STREQ(flags.Check(), "flags or cont contradict each other");
  GoodRow cont;
  cont.view.cont[1] = 0.0F;  // without kTerminated
  EXPECT_STREQ(cont.Check(), "flags or cont contradict each other");
  GoodRow garbage;
  garbage.view.flags[0] = 0xF0;
  EXPECT_STREQ(garbage.Check(), "flags or cont contradict each other");
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
}

}  // namespace
}  // namespace tetrion
