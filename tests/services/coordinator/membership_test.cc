#include "services/coordinator/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

using ::testing::HasSubstr;
using MembershipTest = CoordinatorFixture;

// Its sender gave that connection up and registered again over another; what the older one lists as
// held lacks what was granted since.
TEST_F(MembershipTest, RegistrationThatArrivesAfterAYoungerOneFreesNothing) {
  auto dead = Connect();
  auto alive = Connect(last_process_);
  const wire::Register older{
      .name = "actor-0", .held_below = ~0ULL, .workers = 1, .registration = 1};
  const std::uint64_t session =
      Join(*alive, {.name = "actor-0", .workers = 1, .registration = 2}).session;
  ASSERT_EQ(GetGrant(*alive, session, 1).ranges.size(), 1U);
  wire::Register stale = older;
  stale.previous_session = session;
  ASSERT_EQ(dead->Send(stale), wire::SendStatus::kOk);
  for (int i = 0; i < 5; ++i) Cycle();
  EXPECT_EQ(dead->Receive(20).status, wire::ReceiveStatus::kTimeout);
  EXPECT_EQ(Ask<wire::ReportAck>(*alive, Batch(session, 1, 0, 60))->accepted, 60U);
  EXPECT_EQ(CheckAccount(), 0);
}

// Everything was killed: what the dead members held comes free, but not at once.
TEST_F(MembershipTest, WorkersWaitForTheSlotsOfThoseThatHaveNotComeBack) {
  auto actor = Connect();
  const wire::Register all = {
      .name = "actor-0", .workers = static_cast<std::uint32_t>(config_.run_config.max_workers)};
  Join(*actor, all);
  auto other = Connect();
  const wire::Register one = {.name = "actor-1", .workers = 1};
  EXPECT_EQ(Ask<wire::Refused>(*other, one)->reason, wire::RefuseReason::kNoSlot);
  Crash();
  auto successor = Connect();
  EXPECT_EQ(Ask<wire::Refused>(*successor, all)->reason, wire::RefuseReason::kSlotsAwaited);
  wire::Register more = all;
  ++more.workers;
  EXPECT_EQ(Ask<wire::Refused>(*successor, more)->reason, wire::RefuseReason::kNoSlot);
  Pass(lease_ms_ + 1000);
  EXPECT_NE(Join(*successor, all).session, 0U);
}

// Killed, and its lease runs: nothing but its silence tells, or the process that replaces it.
TEST_F(MembershipTest, WorkersWaitForTheSlotsOfAnActorThatIsSilentOrThatTheyReplace) {
  config_.heartbeat_ms = lease_ms_ / 4;
  Crash();  // starts anew
  auto actor = Connect(), other = Connect(), replacement = Connect();
  const auto all = static_cast<std::uint32_t>(config_.run_config.max_workers);
  Join(*actor, {.name = "actor-0", .workers = all});
  const wire::Register more = {.name = "actor-1", .workers = all};
  EXPECT_EQ(Ask<wire::Refused>(*other, more)->reason, wire::RefuseReason::kNoSlot);
  const wire::Register again = {.name = "actor-0", .workers = all};
  const auto awaited = Ask<wire::Refused>(*replacement, again);
  EXPECT_EQ(awaited->reason, wire::RefuseReason::kSlotsAwaited);
  EXPECT_THAT(awaited->text, HasSubstr("it waits until the other actor-0 is gone"));
  EXPECT_THAT(awaited->text, HasSubstr("if both shall play, start this one with fewer --workers"));
  Pass(lease_ms_ / 2 + 100);
  const auto silent = Ask<wire::Refused>(*other, more);
  EXPECT_EQ(silent->reason, wire::RefuseReason::kSlotsAwaited);
  EXPECT_THAT(silent->text, HasSubstr("those of workers that are gone come free"));
}

TEST_F(MembershipTest, WorkersWaitForTheSlotsOfRingsThatNoActorHasAnyMore) {
  auto actor = Connect(), successor = Connect();
  const wire::Register all = {
      .name = "actor-0", .workers = static_cast<std::uint32_t>(config_.run_config.max_workers)};
  const wire::Registered joined = Join(*actor, all);
  wire::RingsReady ready = {joined.session, {}};
  for (std::uint32_t w = 0; w < all.workers; ++w) {
    ready.rings.push_back({"/dev/shm/x/ring." + std::to_string(w), w, joined.slots[w]});
  }
  ASSERT_TRUE(Ask<wire::RingsAck>(*actor, ready).has_value());
  Pass(lease_ms_ + 1000);
  EXPECT_EQ(Ask<wire::Refused>(*successor, all)->reason, wire::RefuseReason::kSlotsAwaited);
}

}  // namespace
}  // namespace tetrion::coordinator
