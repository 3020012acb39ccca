#include "services/coordinator/slot_table.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

using Slots = std::vector<std::int32_t>;

wire::RingInfo Ring(const std::string& path, std::uint32_t worker, std::int32_t slot) {
  return {path, worker, slot, 0};
}

TEST(SlotTableTest, WorkersGetUnusedSlotsInOrder) {
  SlotTable table(4);
  EXPECT_EQ(table.Assign(1, 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.Assign(2, 1, {}), (Slots{2}));
  EXPECT_EQ(table.InUse(), 3U);
}

TEST(SlotTableTest, AskingAgainGivesTheSameSlots) {
  SlotTable table(4);
  EXPECT_EQ(table.Assign(1, 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.Assign(1, 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.InUse(), 2U);
}

TEST(SlotTableTest, TooFewSlotsChangeNothing) {
  SlotTable table(3);
  ASSERT_TRUE(table.Assign(1, 2, {}).has_value());
  const std::vector<Slot> before = table.slots();
  EXPECT_FALSE(table.Assign(2, 2, {}).has_value());
  EXPECT_EQ(table.slots(), before);
}

TEST(SlotTableTest, SlotDepartedLongestAgoIsReusedFirstAndAfterUnusedOnes) {
  SlotTable table(4);
  table.Assign(1, 3, {});
  for (std::int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        table.Announce(1, Ring("/r" + std::to_string(i), static_cast<std::uint32_t>(i), i)));
  }
  EXPECT_EQ(table.Gone("/r2"), 1U);
  EXPECT_EQ(table.Gone("/r0"), 1U);
  EXPECT_EQ(table.Assign(2, 3, {}), (Slots{3, 2, 0}));
}

TEST(SlotTableTest, RingOutlivesItsSessionUntilTheLearnerReportsItGone) {
  SlotTable table(2);
  table.Assign(1, 2, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  table.EndSession(1);
  EXPECT_EQ(table.InUse(), 1U);  // the worker without a ring gave its slot back
  ASSERT_EQ(table.Rings().size(), 1U);
  EXPECT_EQ(table.Gone("/a"), 1U);
  EXPECT_EQ(table.Gone("/a"), std::nullopt);
  EXPECT_EQ(table.InUse(), 0U);
}

TEST(SlotTableTest, ProcessThatRegistersAnewClaimsItsRingsByPath) {
  SlotTable table(3);
  table.Assign(1, 2, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  ASSERT_TRUE(table.Announce(1, Ring("/b", 1, 1)));
  table.EndSession(1);
  const std::uint64_t revision = table.revision();
  const std::vector<wire::RingInfo> rings = {Ring("/a", 0, 0), Ring("/forged", 1, 1)};
  EXPECT_EQ(table.Assign(2, 2, rings), (Slots{0, 2}));
  EXPECT_GT(table.revision(), revision);
  EXPECT_EQ(table.Rings()[0].session, 2U);
  EXPECT_EQ(table.Rings()[1].session, 1U);
}

TEST(SlotTableTest, RingIsAnnouncedOnlyByTheSlotsOwnerAndUnderOnePath) {
  SlotTable table(2);
  table.Assign(1, 1, {});
  table.Assign(2, 1, {});
  EXPECT_FALSE(table.Announce(2, Ring("/a", 0, 0)));
  EXPECT_FALSE(table.Announce(1, Ring("/a", 1, 0)));
  EXPECT_FALSE(table.Announce(1, Ring("/a", 0, -1)));
  EXPECT_FALSE(table.Announce(1, Ring("/a", 0, 2)));
  EXPECT_FALSE(table.Announce(1, Ring("", 0, 0)));
  EXPECT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  EXPECT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  EXPECT_FALSE(table.Announce(1, Ring("/b", 0, 0)));
  EXPECT_FALSE(table.Announce(2, Ring("/a", 0, 1)));  // one ring feeds one slot
}

TEST(SlotTableTest, OrderOfDepartureSurvivesTheStore) {
  SlotTable table(2);
  table.Assign(1, 2, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  ASSERT_TRUE(table.Announce(1, Ring("/b", 1, 1)));
  table.Gone("/b");
  SlotTable again(table.slots());
  again.Gone("/a");
  EXPECT_EQ(again.Assign(2, 2, {}), (Slots{1, 0}));
}

}  // namespace
}  // namespace tetrion
