#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

// A crash leaves what was on disk; everything acknowledged before it is there afterwards.
namespace tetrion::coordinator {
namespace {

using RestartTest = CoordinatorFixture;

TEST_F(RestartTest, AcknowledgedEpisodesSurviveAndTheEpochGrows) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  ASSERT_EQ(Ask<wire::ReportAck>(*client, Batch(session, 1, 0, 60))->accepted, 60U);
  Crash();
  EXPECT_EQ(stored_.epoch, 2U);
  EXPECT_EQ(stored_.run_id, 12345U >> 1);
  EXPECT_EQ(stored_.counts.tokens.done, 60U);
  EXPECT_EQ(stored_.last_episodes.size(), 60U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(RestartTest, TimeOfTheWholeRunCountsOnWhereNobodyPlays) {
  config_.stop_after = {.seconds = 60};
  config_.stop_counts_whole_run = true;
  Crash();
  Pass(35'000);
  Crash();
  EXPECT_GE(stored_.counts.served_s, 25);
  Pass(20'000);
  EXPECT_FALSE(control_->draining());
  Pass(20'000);
  EXPECT_TRUE(control_->draining());
}

TEST_F(RestartTest, UnacknowledgedReportsAreCountedOnceWhenSaidAgain) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  ASSERT_EQ(client->Send(Batch(session, 1, 0, 60)), wire::SendStatus::kOk);
  for (int i = 0; i < 20 && store_agent_->Queued() == 0; ++i) CycleWithoutStore();
  ASSERT_GT(store_agent_->Queued(), 0U);  // counted in memory, not on disk
  Crash();
  auto back = Connect(last_process_);
  const wire::HeldRange held{0, 1, wire::Bitmap(wire::kRangeBitmapBytes, 0xff)};
  const wire::Registered again = Join(*back, {.name = "actor-0",
                                              .previous_session = session,
                                              .held = {held},
                                              .held_below = 256,
                                              .workers = 1});
  EXPECT_EQ(again.session, session);
  EXPECT_EQ(again.epoch, 2U);
  EXPECT_EQ(Ask<wire::ReportAck>(*back, Batch(session, 1, 0, 60))->accepted, 60U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(RestartTest, SessionThatComesBackKeepsWhatItHoldsAndTheRestIsFreed) {
  auto client = Connect();
  const wire::Registered joined = JoinActor(*client, 2);
  GetGrant(*client, joined.session, 1, 2);
  Crash();
  auto back = Connect(last_process_);
  const wire::HeldRange held{0, 1, wire::Bitmap(wire::kRangeBitmapBytes, 0x0f)};
  const wire::Registered again = Join(*back, {.name = "actor-0",
                                              .previous_session = joined.session,
                                              .held = {held},
                                              .held_below = ~0ULL,
                                              .workers = 2});
  EXPECT_EQ(again.slots, joined.slots);
  EXPECT_EQ(GetGrant(*back, joined.session, 2).ranges[0].first_id, 256U);
  EXPECT_EQ(Ask<wire::ReportAck>(*back, Batch(joined.session, 1, 0, 4))->accepted, 4U);
  EXPECT_EQ(Ask<wire::ReportAck>(*back, Batch(joined.session, 2, 4, 4))->refused, 4U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(RestartTest, GrantCommittedButNeverSentComesUnderTheSameNumber) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  ASSERT_EQ(client->Send(wire::GrantRequest{session, 1, 1}), wire::SendStatus::kOk);
  for (int i = 0; i < 20 && store_agent_->Queued() == 0; ++i) CycleWithoutStore();
  store_agent_->DoWork();  // committed; the control agent dies before it looks
  Crash();
  auto back = Connect(last_process_);
  const wire::Grant grant = GetGrant(*back, session, 1);
  ASSERT_EQ(grant.ranges.size(), 1U);
  EXPECT_EQ(grant.ranges[0].first_id, 0U);
  EXPECT_EQ(grant.ranges[0].attempt, 1U);
  EXPECT_EQ(GetGrant(*back, session, 2).ranges[0].first_id, 256U);
}

TEST_F(RestartTest, RequestNumbersGoOnWhenEveryTokenIsDone) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  for (std::uint64_t i = 0; i < 2; ++i) {
    GetGrant(*client, session, i + 1);
    ASSERT_EQ(Ask<wire::ReportAck>(*client, Batch(session, i + 1, i * 256, 256))->accepted, 256U);
  }
  Crash();
  EXPECT_TRUE(stored_.open_ranges.empty());
  auto back = Connect(last_process_);
  EXPECT_EQ(GetGrant(*back, session, 3).ranges.size(), 1U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(RestartTest, ProcessThatSaidGoodbyeLeavesItsStepsAndNothingElse) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 800});
  Crash();
  EXPECT_TRUE(stored_.sessions.empty());
  EXPECT_TRUE(stored_.processes.empty());
  EXPECT_EQ(stored_.counts.steps_forgotten, 800U);
  EXPECT_EQ(stored_.counts.env_steps, 800U);
}

TEST_F(RestartTest, SessionThatDoesNotComeBackIsFencedAfterAFullLease) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Crash();
  Pass(2500);
  EXPECT_NE(control_->Status().find("\"actors\":1"), std::string::npos);
  Pass(1500);
  EXPECT_NE(control_->Status().find("\"actors\":0"), std::string::npos);
  Crash();
  EXPECT_TRUE(stored_.sessions.empty());
  auto other = Connect();
  const std::uint64_t second = JoinActor(*other).session;
  EXPECT_EQ(SequenceOf(second), SequenceOf(session) + 1);
  EXPECT_EQ(GetGrant(*other, second, 1).ranges[0].attempt, 2U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(RestartTest, MembersNotYetHeardKeepTheirSessionsWhileOthersComeBack) {
  std::vector<std::uint64_t> sessions, processes;
  for (int i = 0; i < 6; ++i) {
    auto client = Connect();
    sessions.push_back(JoinActor(*client).session);
    processes.push_back(last_process_);
  }
  Crash();
  for (std::size_t i = 0; i < 5; ++i) {  // one each 1.5 s, well beyond the lease of 3 s
    auto back = Connect(processes[i]);
    ASSERT_TRUE(Ask<wire::HeartbeatAck>(*back, wire::Heartbeat{.session = sessions[i]}))
        << "session " << i;
    Pass(1300);
  }
  auto last = Connect(processes[5]);
  EXPECT_TRUE(Ask<wire::HeartbeatAck>(*last, wire::Heartbeat{.session = sessions[5]}));
  Pass(6000);  // the others were heard, and are silent since
  EXPECT_NE(control_->Status().find("\"actors\":0"), std::string::npos);
}

TEST_F(RestartTest, VersionsNeverGoDownAcrossRestarts) {
  auto learner = Connect();
  const wire::Registered first = JoinLearner(*learner);
  Crash();
  auto back = Connect(last_process_);
  const wire::Registered again = Join(
      *back, {.role = wire::Role::kLearner, .name = "learner", .previous_session = first.session});
  EXPECT_EQ(again.session, first.session);
  EXPECT_EQ(again.version_first, 1U);
  Ask<wire::GoodbyeAck>(*back, wire::Goodbye{first.session, 0});
  Crash();
  auto fresh = Connect();
  EXPECT_EQ(JoinLearner(*fresh).version_first, 1 + VersionBlocks::kBlock);
}

TEST_F(RestartTest, RingsAndTheirSlotsSurvive) {
  auto actor = Connect();
  const wire::Registered joined = JoinActor(*actor);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, joined.slots[0], joined.session};
  ASSERT_TRUE(Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}}).has_value());
  Crash();
  auto learner = Connect();
  JoinLearner(*learner);
  const auto list = Await<wire::RingList>(*learner);
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->rings.size(), 1U);
  EXPECT_EQ(list->rings[0].path, ring.path);
}

TEST_F(RestartTest, StepsAreNeverCountedTwice) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Ask<wire::HeartbeatAck>(*client, wire::Heartbeat{.session = session, .env_steps = 700});
  Pass(2000);
  Crash();
  auto back = Connect(last_process_);
  Ask<wire::HeartbeatAck>(*back, wire::Heartbeat{.session = session, .env_steps = 1000});
  Pass(2000);
  EXPECT_NE(control_->Status().find("\"env_steps\":1000,"), std::string::npos)
      << control_->Status();
}

TEST_F(RestartTest, FullDiskStopsGrantsKeepsSessionsAndIsLeftBehind) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1, 64);
  store_->LimitPages(store_->Pages());
  for (std::uint64_t batch = 1; batch <= 16 && !store_agent_->Paused(); ++batch) {
    const std::uint64_t first = (batch - 1) * wire::kMaxReports;
    ASSERT_EQ(client->Send(Batch(session, batch, first, wire::kMaxReports)), wire::SendStatus::kOk);
    for (int i = 0; i < 5; ++i) Cycle();
  }
  ASSERT_TRUE(store_agent_->Paused());
  const std::uint64_t committed = store_agent_->committed();
  ASSERT_EQ(client->Send(wire::GrantRequest{session, 2, 1}), wire::SendStatus::kOk);
  for (int i = 0; i < 10; ++i) {
    Pass(900);
    // Heartbeats are answered and renew the lease, grants are not.
    EXPECT_TRUE(Ask<wire::HeartbeatAck>(*client, wire::Heartbeat{.session = session}).has_value());
  }
  EXPECT_EQ(store_agent_->committed(), committed);
  EXPECT_EQ(CheckAccount(), 0);
  store_->LimitPages(0);
  Pass(1500);
  EXPECT_FALSE(store_agent_->Paused());
  EXPECT_EQ(GetGrant(*client, session, 2).ranges.size(), 1U);
  EXPECT_EQ(CheckAccount(), 0);
}

// A member whose connection was silent, or whose coordinator was started again, says nothing but
// its registration, which is refused for now while nothing can be stored.
TEST_F(RestartTest, RegistrationsKeepASessionWhileNothingCanBeStored) {
  auto client = Connect(1);
  const std::uint64_t session = JoinActor(*client).session;
  const wire::Grant grant = GetGrant(*client, session, 1, 64);
  store_->LimitPages(store_->Pages());
  for (std::uint64_t batch = 1; batch <= 16 && !store_agent_->Paused(); ++batch) {
    const std::uint64_t first = (batch - 1) * wire::kMaxReports;
    ASSERT_EQ(client->Send(Batch(session, batch, first, wire::kMaxReports)), wire::SendStatus::kOk);
    for (int i = 0; i < 5; ++i) Cycle();
  }
  ASSERT_TRUE(store_agent_->Paused());
  client = Connect(1);
  const wire::Register again = {.name = "actor-0", .previous_session = session, .workers = 1};
  for (int i = 0; i < 10; ++i) {
    const auto refused = Ask<wire::Refused>(*client, again);
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->reason, wire::RefuseReason::kStorePaused);
    EXPECT_THAT(refused->text, ::testing::HasSubstr(store_agent_->PauseReason()));
    Pass(900);
  }
  store_->LimitPages(0);
  Pass(1500);
  EXPECT_EQ(Join(*client, again).session, session);
  EXPECT_EQ(CheckAccount(), 0);
}

// Property: whatever was acknowledged before any of many crashes is there after all of them, and
// the account holds at every one.
TEST_F(RestartTest, ManyCrashesUnderLoadLoseNothingAcknowledged) {
  std::uint64_t session = 0, request = 0, batch = 0, acknowledged = 0;
  for (int round = 0; round < 12; ++round) {
    auto client = Connect(1);
    const wire::Registered joined =
        Join(*client, {.name = "actor-0", .previous_session = session, .workers = 1});
    session = joined.session;
    const wire::Grant grant = GetGrant(*client, session, ++request);
    ASSERT_EQ(grant.ranges.size(), 1U);
    const wire::GrantedRange& range = grant.ranges[0];
    const Bits256 done = Bits256::From(range.done);
    wire::ReportBatch first{session, ++batch, {}, 0}, second{session, ++batch, {}, 0};
    for (std::uint32_t i = 0; i < wire::kRangeTokens; ++i) {
      if (done.Test(i)) continue;
      auto& part = i % 3 == 0 ? first : second;
      if (part.episodes.size() < 40) {
        part.episodes.push_back({.token_id = range.first_id + i, .attempt = range.attempt});
      }
    }
    const auto ack = Ask<wire::ReportAck>(*client, first);
    ASSERT_TRUE(ack.has_value());
    acknowledged += ack->accepted;
    ASSERT_EQ(client->Send(second), wire::SendStatus::kOk);  // lost or not: nobody knows
    for (int i = 0; i < round % 3; ++i) {
      if (round % 2 == 0) CycleWithoutStore();
      if (round % 2 == 1) Cycle();
    }
    Crash();
    ASSERT_GE(stored_.counts.tokens.done, acknowledged);
    acknowledged = stored_.counts.tokens.done;
    ASSERT_EQ(CheckAccount(), 0) << "round " << round;
  }
  EXPECT_GT(acknowledged, 100U);  // more than the first batches alone: some of the second too
}

}  // namespace
}  // namespace tetrion::coordinator
