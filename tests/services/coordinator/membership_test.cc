#include "services/coordinator/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

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

// Calls `once` at the next look.
struct InterruptedClock final : Clock {
  FakeClock inner;
  mutable std::function<void()> once;
  std::int64_t NowNs() const override {
    if (once) std::exchange(once, nullptr)();
    return inner.NowNs();
  }
};

// After a restart: a grant is answered again, then its member registers and holds none of it.
TEST_F(MembershipTest, AnswerToARepeatedRegistrationOvertakesNone) {
  auto before = Connect(77);
  const std::uint64_t session = JoinActor(*before).session;
  const wire::GrantedRange range = GetGrant(*before, session, 1).ranges[0];
  before.reset();
  Crash();
  InterruptedClock clock;
  clock.inner.AdvanceMs(1000);
  control_.reset();
  control_ = std::make_unique<ControlAgent>(config_, stored_, *store_agent_, *metrics_, clock);
  auto member = Connect(77);
  // What was sent is there when the cycle begins, but on a machine that stands still.
  const auto handle = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int i = 0; i < kTries && control_->DoWork() == 0; ++i) {
    }
  };
  ASSERT_EQ(member->Send(wire::GrantRequest{session, 2, 1}), wire::SendStatus::kOk);
  handle();
  wire::Register again = {.name = "actor-0",
                          .previous_session = session,
                          .held = {{range.first_id, range.attempt, wire::Bitmap(32, 0xff)}},
                          .held_below = ~std::uint64_t{0},
                          .workers = 1,
                          .registration = 2};
  ASSERT_EQ(member->Send(again), wire::SendStatus::kOk);
  handle();
  again.registration = 3;
  ASSERT_EQ(member->Send(again), wire::SendStatus::kOk);
  // Stored after the cycle has sent what was, before it reads.
  clock.once = [&] { store_agent_->DoWork(); };
  handle();
  for (int i = 0; i < 3; ++i) control_->DoWork();
  std::vector<std::size_t> kinds;
  for (int i = 0; i < kTries && kinds.size() < 3; ++i) {
    const auto got = member->Receive(100);
    if (got.status == wire::ReceiveStatus::kMessage) kinds.push_back(got.message.index());
  }
  EXPECT_NE(member->Receive(100).status, wire::ReceiveStatus::kMessage) << "one answer each";
  const std::size_t grant = wire::Message(wire::Grant{}).index();
  const std::size_t registered = wire::Message(wire::Registered{}).index();
  EXPECT_EQ(kinds, (std::vector<std::size_t>{grant, registered, registered}));
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
  EXPECT_EQ(Ask<wire::Refused>(*successor, more)->reason, wire::RefuseReason::kConfigMismatch)
      << "never";
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
