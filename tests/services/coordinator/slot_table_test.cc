#include "services/coordinator/slot_table.h"

#include <gtest/gtest.h>

#include "lib/wire/remote_path.h"

namespace tetrion::coordinator {
namespace {

using Slots = std::vector<std::int32_t>;

wire::RingInfo Ring(const std::string& path, std::uint32_t worker, std::int32_t slot) {
  return {path, worker, slot, 0};
}

// Sessions 1 and 3 are of one process.
SlotTable::Owner Of(std::uint64_t session) {
  return {session, session == 3 ? 101 : 100 + session};
}

// Session 1 has ended; its rings /a in slot 0 and /b in slot 1 are still there.
void LeaveRings(SlotTable& table) {
  table.Assign(Of(1), 2, {});
  EXPECT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  EXPECT_TRUE(table.Announce(1, Ring("/b", 1, 1)));
  table.EndSession(1);
}

TEST(SlotTableTest, WorkersGetUnusedSlotsInOrder) {
  SlotTable table(4);
  EXPECT_EQ(table.Assign(Of(1), 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.Assign(Of(2), 1, {}), (Slots{2}));
  EXPECT_EQ(table.InUse(), 3U);
}

TEST(SlotTableTest, AskingAgainGivesTheSameSlots) {
  SlotTable table(4);
  EXPECT_EQ(table.Assign(Of(1), 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.Assign(Of(1), 2, {}), (Slots{0, 1}));
  EXPECT_EQ(table.InUse(), 2U);
}

TEST(SlotTableTest, TooFewSlotsChangeNothing) {
  SlotTable table(3);
  ASSERT_TRUE(table.Assign(Of(1), 2, {}).has_value());
  const std::vector<Slot> before = table.slots();
  EXPECT_FALSE(table.Assign(Of(2), 2, {}).has_value());
  EXPECT_EQ(table.slots(), before);
}

TEST(SlotTableTest, SlotDepartedLongestAgoIsReusedFirstAndAfterUnusedOnes) {
  SlotTable table(4);
  table.Assign(Of(1), 3, {});
  for (std::int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        table.Announce(1, Ring("/r" + std::to_string(i), static_cast<std::uint32_t>(i), i)));
  }
  EXPECT_EQ(table.Gone("/r2", 1)->session, 1U);
  EXPECT_EQ(table.Gone("/r0", 1)->session, 1U);
  EXPECT_EQ(table.Assign(Of(2), 3, {}), (Slots{3, 2, 0}));
}

TEST(SlotTableTest, RingOutlivesItsSessionUntilTheLearnerReportsItGone) {
  SlotTable table(2);
  table.Assign(Of(1), 2, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  table.EndSession(1);
  EXPECT_EQ(table.InUse(), 1U);  // the worker without a ring gave its slot back
  ASSERT_EQ(table.Rings().size(), 1U);
  EXPECT_EQ(table.Gone("/a", 1)->session, 1U);
  EXPECT_FALSE(table.Gone("/a", 1).has_value());
  EXPECT_EQ(table.InUse(), 0U);
}

TEST(SlotTableTest, ProcessThatRegistersAnewClaimsItsRingsByPath) {
  SlotTable table(3);
  LeaveRings(table);
  const std::uint64_t revision = table.revision();
  const std::vector<wire::RingInfo> rings = {Ring("/a", 0, 0), Ring("/forged", 1, 1)};
  EXPECT_EQ(table.Assign(Of(3), 2, rings), (Slots{0, 2}));
  EXPECT_GT(table.revision(), revision);
  EXPECT_EQ(table.Rings()[0].session, 3U);
  EXPECT_EQ(table.Rings()[1].session, 1U);
}

// Also of its own process: a message can say any number.
TEST(SlotTableTest, RingIsClaimedWithItsOwnSlotAlone) {
  SlotTable table(4);
  LeaveRings(table);
  ASSERT_EQ(table.Assign(Of(3), 1, std::vector{Ring("/a", 0, 1)}), (Slots{2}));
  EXPECT_EQ(table.Assign(Of(3), 2, std::vector{Ring("/b", 1, 1'000'000)}), (Slots{2, 3}));
  EXPECT_EQ(table.Rings()[0].session, 1U);
  EXPECT_EQ(table.Rings()[1].session, 1U);
}

// A path is used again: its ring was given up, and its actor came back with a later session.
TEST(SlotTableTest, WordOfAnEarlierRingOfThePathChangesNothing) {
  const std::string a = wire::RemoteRingPath(5, 0), b = wire::RemoteRingPath(5, 1);
  SlotTable table(3);
  table.Assign(Of(1), 2, {});
  ASSERT_TRUE(table.Announce(1, Ring(a, 0, 0)));
  ASSERT_TRUE(table.Announce(1, Ring(b, 1, 1)));
  EXPECT_EQ(table.Gone(a, 1)->session, 1U);
  table.EndSession(1);
  EXPECT_EQ(table.Assign(Of(3), 2, std::vector{Ring(a, 0, 0), Ring(b, 1, 1)}), (Slots{2, 1}));
  ASSERT_TRUE(table.Announce(3, Ring(a, 0, 2)));
  const std::vector<Slot> before = table.slots();
  const std::uint64_t revision = table.revision();
  EXPECT_FALSE(table.Gone(a, 1).has_value()) << "announced anew by session 3";
  EXPECT_FALSE(table.Gone(b, 1).has_value()) << "claimed by session 3";
  EXPECT_EQ(table.slots(), before);
  EXPECT_EQ(table.revision(), revision);
  EXPECT_EQ(table.Gone(a, 3)->session, 3U);
  EXPECT_EQ(table.Gone(b, 0)->session, 3U) << "a learner that knows no owners";
}

// A local ring's file is made once: the word of its end may come after another session claimed it.
TEST(SlotTableTest, EndOfALocalRingIsItsEndForALaterSessionToo) {
  SlotTable table(2);
  table.Assign(Of(1), 1, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  table.EndSession(1);
  ASSERT_EQ(table.Assign(Of(3), 1, std::vector{Ring("/a", 0, 0)}), (Slots{0}));
  EXPECT_EQ(table.Gone("/a", 1)->session, 3U);
  EXPECT_TRUE(table.Rings().empty());
}

TEST(SlotTableTest, EndOfASessionWithRingsIsAChangeOfTheList) {
  SlotTable table(2);
  table.Assign(Of(1), 1, {});
  table.Assign(Of(2), 1, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  const std::uint64_t revision = table.revision();
  table.EndSession(2);
  EXPECT_EQ(table.revision(), revision) << "it had no ring";
  table.EndSession(1);
  EXPECT_GT(table.revision(), revision);
}

TEST(SlotTableTest, AnotherProcessCannotClaimARing) {
  SlotTable table(2);
  table.Assign(Of(1), 1, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  table.EndSession(1);
  EXPECT_EQ(table.Assign(Of(2), 1, std::vector{Ring("/a", 0, 0)}), (Slots{1}));
  EXPECT_EQ(table.Rings()[0].session, 1U);
}

TEST(SlotTableTest, OnlyWhatChangedGoesToTheStore) {
  SlotTable table(256);
  table.Assign(Of(1), 2, {});
  const SlotChanges changes = table.TakeDirty();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].first, 0U);
  EXPECT_EQ(changes[0].second, table.slots()[0]);
  EXPECT_TRUE(table.TakeDirty().empty());
  ASSERT_TRUE(table.Announce(1, Ring("/b", 1, 1)));
  ASSERT_EQ(table.TakeDirty().size(), 1U);
  table.Gone("/b", 1);  // released: the store must hear of it too
  const SlotChanges released = table.TakeDirty();
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].second.state, Slot::State::kDeparted);
}

TEST(SlotTableTest, RingIsAnnouncedOnlyByTheSlotsOwnerAndUnderOnePath) {
  SlotTable table(2);
  table.Assign(Of(1), 1, {});
  table.Assign(Of(2), 1, {});
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
  table.Assign(Of(1), 2, {});
  ASSERT_TRUE(table.Announce(1, Ring("/a", 0, 0)));
  ASSERT_TRUE(table.Announce(1, Ring("/b", 1, 1)));
  table.Gone("/b", 1);
  SlotTable again(table.slots());
  again.Gone("/a", 1);
  EXPECT_EQ(again.Assign(Of(2), 2, {}), (Slots{1, 0}));
}

}  // namespace
}  // namespace tetrion::coordinator
