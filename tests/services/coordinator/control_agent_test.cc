#include "services/coordinator/control_agent.h"

#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "lib/wire/remote_path.h"
#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

class ControlAgentTest : public CoordinatorFixture {
 protected:
  // The answer must not come before the store has committed, and then it must.
  template <typename Answer>
  void ExpectAfterCommit(wire::ControlClient& client, const wire::Message& message) {
    SCOPED_TRACE(message.index());
    ASSERT_EQ(client.Send(message), wire::SendStatus::kOk);
    const std::uint64_t pushed = store_agent_->pushed();
    for (int i = 0; i < 50 && store_agent_->pushed() == pushed; ++i) CycleWithoutStore();
    ASSERT_GT(store_agent_->pushed(), pushed);
    for (int i = 0; i < 3; ++i) CycleWithoutStore();
    while (true) {
      const wire::ReceiveResult early = client.Receive(20);
      if (early.status != wire::ReceiveStatus::kMessage) break;
      EXPECT_FALSE(std::holds_alternative<Answer>(early.message));
    }
    EXPECT_TRUE(Await<Answer>(client).has_value());
  }
  template <typename Answer>
  std::optional<Answer> AwaitWithoutStore(wire::ControlClient& client) {
    for (int i = 0; i < kTries; ++i) {
      const wire::ReceiveResult result = client.Receive(0);
      if (const auto* answer = std::get_if<Answer>(&result.message)) return *answer;
      CycleWithoutStore();
    }
    return std::nullopt;
  }
};

TEST_F(ControlAgentTest, ActorIsToldRunSlotsAndLease) {
  auto client = Connect();
  const wire::Registered registered = JoinActor(*client, 3);
  EXPECT_EQ(SequenceOf(registered.session), 1U);
  EXPECT_EQ(registered.epoch, 1U);
  EXPECT_EQ(registered.run, "test");
  EXPECT_EQ(registered.slots, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(registered.session_lease_ms, 3000U);
  EXPECT_EQ(RunConfigFromText(registered.run_config), config_.run_config);
}

TEST_F(ControlAgentTest, ActorsAreToldWhereTheLearnerTakesRows) {
  auto actor = Connect(), learner = Connect();
  const wire::Registered early = JoinActor(*actor);
  EXPECT_EQ(early.rows_endpoint + early.rows_key, "");
  wire::Register message = {.role = wire::Role::kLearner,
                            .name = "learner",
                            .rows_endpoint = "10.0.0.7:9001",
                            .rows_key = "a key"};
  EXPECT_EQ(Join(*learner, message).rows_endpoint, "");
  const wire::Heartbeat beat = {.session = early.session};
  EXPECT_EQ(Ask<wire::HeartbeatAck>(*actor, beat)->rows_endpoint, "10.0.0.7:9001");
  EXPECT_EQ(Ask<wire::HeartbeatAck>(*actor, beat)->rows_key, "a key");
  EXPECT_EQ(JoinActor(*Connect()).rows_endpoint, "10.0.0.7:9001");
  message.rows_endpoint = "10.0.0.8:9001";
  Join(*learner, message);
  EXPECT_EQ(Ask<wire::HeartbeatAck>(*actor, beat)->rows_endpoint, "10.0.0.8:9001");
}

TEST_F(ControlAgentTest, NothingIsPromisedBeforeItIsCommitted) {
  auto actor = Connect(), learner = Connect();
  ExpectAfterCommit<wire::Registered>(*actor, wire::Register{.name = "a", .workers = 1});
  const std::uint64_t session = JoinActor(*actor).session;  // said again: the same one
  ExpectAfterCommit<wire::Grant>(*actor, wire::GrantRequest{session, 1, 1});
  ExpectAfterCommit<wire::ReportAck>(*actor, Batch(session, 1, 0, 10));
  const wire::HeldRange all{0, 1, wire::Bitmap(wire::kRangeBitmapBytes, 0xff)};
  ExpectAfterCommit<wire::AbandonAck>(*actor, wire::Abandon{session, 1, "drain", {all}});
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, 0, session};
  const wire::Registered leads = JoinLearner(*learner);
  ASSERT_TRUE(Await<wire::RingList>(*learner).has_value());
  ExpectAfterCommit<wire::RingsAck>(*actor, wire::RingsReady{session, {ring}});
  ASSERT_TRUE(Await<wire::RingList>(*learner).has_value());
  ExpectAfterCommit<wire::RingList>(
      *learner, wire::RingGone{leads.session, ring.path, wire::RingEnd::kClosed, ""});
  ExpectAfterCommit<wire::GoodbyeAck>(*actor, wire::Goodbye{session, 0});
}

TEST_F(ControlAgentTest, VersionLimitIsNotToldBeforeItIsCommitted) {
  auto learner = Connect();
  const std::uint64_t session = JoinLearner(*learner).session;
  const wire::Heartbeat late{.session = session, .policy_version = 2 + VersionBlocks::kBlock / 2};
  ASSERT_EQ(learner->Send(late), wire::SendStatus::kOk);
  EXPECT_EQ(AwaitWithoutStore<wire::HeartbeatAck>(*learner)->version_limit,
            1 + VersionBlocks::kBlock);
  Cycle();
  EXPECT_EQ(Ask<wire::HeartbeatAck>(*learner, late)->version_limit, 1 + 2 * VersionBlocks::kBlock);
}

TEST_F(ControlAgentTest, RegistrationSaidTwiceMakesOneSession) {
  auto client = Connect();
  const wire::Register message{.name = "a", .workers = 2};
  const wire::Registered first = Join(*client, message);
  const wire::Registered again = Join(*client, message);
  auto reconnected = Connect(last_process_);
  const wire::Registered third = Join(*reconnected, message);
  EXPECT_EQ(again.session, first.session);
  EXPECT_EQ(third.session, first.session);
  EXPECT_EQ(third.slots, first.slots);
}

TEST_F(ControlAgentTest, RegistrationSaidTwiceIsStoredOnce) {
  auto client = Connect();
  const wire::Register message{.name = "a", .workers = 2};
  const wire::Registered first = Join(*client, message);
  const std::uint64_t pushed = store_agent_->pushed();
  EXPECT_EQ(Join(*client, message).slots, first.slots);
  EXPECT_EQ(store_agent_->pushed(), pushed);
}

TEST_F(ControlAgentTest, ContradictingSettingIsRefusedWithBothValues) {
  auto client = Connect();
  const auto refused =
      Ask<wire::Refused>(*client, wire::Register{.name = "actor-7", .given = {{"lanes", "3"}}});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kConfigMismatch);
  EXPECT_NE(refused->text.find("lanes: here 3, the run has 64"), std::string::npos)
      << refused->text;
  const auto unknown = Ask<wire::Refused>(
      *client, wire::Register{.name = "actor-7", .given = {{"no_such_key", "3"}}});
  ASSERT_TRUE(unknown.has_value());
  EXPECT_NE(unknown->text.find("no_such_key"), std::string::npos);
}

TEST_F(ControlAgentTest, AgreeingSettingIsWelcome) {
  auto client = Connect();
  EXPECT_EQ(SequenceOf(Join(*client, {.name = "a", .given = {{"lanes", "64"}}}).session), 1U);
}

TEST_F(ControlAgentTest, TooManyWorkersAreRefusedWithTheSizes) {
  auto first = Connect(), second = Connect();
  JoinActor(*first, 6);
  const auto refused = Ask<wire::Refused>(*second, wire::Register{.name = "late", .workers = 3});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kNoSlot);
  EXPECT_NE(refused->text.find("3 workers"), std::string::npos);
  EXPECT_NE(refused->text.find("8 slots"), std::string::npos);
  EXPECT_NE(refused->text.find("6 are in use"), std::string::npos);
}

TEST_F(ControlAgentTest, EpisodesAreCountedOnceHoweverOftenABatchIsSaid) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  const wire::Grant grant = GetGrant(*client, session, 1);
  ASSERT_EQ(grant.ranges.size(), 1U);
  EXPECT_EQ(grant.ranges[0].max_steps, config_.run_config.max_steps);
  const auto first = Ask<wire::ReportAck>(*client, Batch(session, 1, 0, 100));
  const auto again = Ask<wire::ReportAck>(*client, Batch(session, 1, 0, 100));
  ASSERT_TRUE(first.has_value() && again.has_value());
  EXPECT_EQ(first->accepted, 100U);
  EXPECT_EQ(again->duplicates, 100U);
  EXPECT_EQ(again->accepted, 0U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(ControlAgentTest, RepeatedGrantRequestReturnsTheSameRanges) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  const wire::Grant first = GetGrant(*client, session, 1, 2);
  const wire::Grant again = GetGrant(*client, session, 1, 2);
  ASSERT_EQ(again.ranges.size(), 2U);
  EXPECT_EQ(again.ranges[0].first_id, first.ranges[0].first_id);
  EXPECT_EQ(again.ranges[1].attempt, first.ranges[1].attempt);
  EXPECT_EQ(GetGrant(*client, session, 2).ranges[0].first_id, 512U);
}

TEST_F(ControlAgentTest, SilentActorIsFencedAndItsTokensGoToOthers) {
  auto silent = Connect(), other = Connect();
  const std::uint64_t session = JoinActor(*silent).session;
  GetGrant(*silent, session, 1);
  Ask<wire::ReportAck>(*silent, Batch(session, 1, 0, 10));
  Pass(4000);
  const auto late = Ask<wire::Fenced>(*silent, Batch(session, 2, 10, 10));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->session, session);
  const std::uint64_t second = JoinActor(*other).session;
  const wire::Grant grant = GetGrant(*other, second, 1);
  EXPECT_EQ(grant.ranges[0].first_id, 0U);
  EXPECT_EQ(grant.ranges[0].attempt, 2U);
  EXPECT_EQ(grant.ranges[0].done[0], 0xff);
  EXPECT_EQ(grant.ranges[0].done[1], 0x03);
  const auto stale = Ask<wire::ReportAck>(*other, Batch(second, 1, 10, 10, 1));
  EXPECT_EQ(stale->refused, 10U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(ControlAgentTest, HeartbeatsKeepASessionAndCountSteps) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    Pass(1000);
    const auto ack =
        Ask<wire::HeartbeatAck>(*client, wire::Heartbeat{.session = session, .env_steps = 100 * i});
    ASSERT_TRUE(ack.has_value());
    EXPECT_EQ(ack->epoch, 1U);
  }
  Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 1050});
  Pass(1000);
  EXPECT_NE(control_->Status().find("\"env_steps\":1050,"), std::string::npos)
      << control_->Status();
}

TEST_F(ControlAgentTest, StallOfItsOwnGivesEverySessionAFullLease) {
  auto client = Connect();
  JoinActor(*client);
  Cycle();
  clock_.AdvanceMs(60'000);  // nothing was read for so long, and nothing waits to be read
  control_->DoWork();
  Pass(2500);
  EXPECT_NE(control_->Status().find("\"actors\":1"), std::string::npos);
  Pass(1500);
  EXPECT_NE(control_->Status().find("\"actors\":0"), std::string::npos);
}

TEST_F(ControlAgentTest, AnyMessageRenewsTheLease) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  for (std::uint64_t batch = 1; batch <= 8; ++batch) {
    ASSERT_TRUE(Ask<wire::ReportAck>(*client, Batch(session, batch, batch * 10, 10)).has_value());
    Pass(1000);
  }
  EXPECT_NE(control_->Status().find("\"actors\":1"), std::string::npos);
}

TEST_F(ControlAgentTest, StoreThatIsBehindCostsNobodyItsLease) {
  auto busy = Connect(), silent = Connect();
  const std::uint64_t session = JoinActor(*busy).session;
  const std::uint64_t other = JoinActor(*silent).session;
  std::uint64_t request = 0;
  for (int i = 0; i < 4000 && store_agent_->HasRoom(); ++i) {
    static_cast<void>(busy->Send(wire::Abandon{session, ++request, "drain", {}}));
    if (i % 64 == 0) CycleWithoutStore();
  }
  for (int i = 0; i < 50 && store_agent_->HasRoom(); ++i) CycleWithoutStore();
  ASSERT_FALSE(store_agent_->HasRoom());
  for (int i = 0; i < 12; ++i) {  // twice the lease, in steps that are no stall
    clock_.AdvanceMs(500);
    CycleWithoutStore();
  }
  EXPECT_TRUE(Ask<wire::HeartbeatAck>(*silent, wire::Heartbeat{.session = other}).has_value());
  Pass(1000);
  EXPECT_NE(control_->Status().find("\"actors\":2"), std::string::npos);
}

TEST_F(ControlAgentTest, StoreThatWasBehindGivesEverySessionAFullLease) {
  auto busy = Connect(), silent = Connect();
  const std::uint64_t session = JoinActor(*busy).session;
  JoinActor(*silent);
  std::uint64_t request = 0;
  for (int i = 0; i < 8000 && store_agent_->HasRoom(); ++i) {
    static_cast<void>(busy->Send(wire::Abandon{session, ++request, "drain", {}}));
    if (i % 64 == 0) CycleWithoutStore();
  }
  ASSERT_FALSE(store_agent_->HasRoom());
  for (int i = 0; i < 12; ++i) {  // twice the lease, in steps that are no stall
    clock_.AdvanceMs(500);
    CycleWithoutStore();
  }
  for (int i = 0; i < 10; ++i) Cycle();  // half a second: all that waits is read and judged
  EXPECT_NE(control_->Status().find("\"actors\":2"), std::string::npos);
}

// The member's heartbeat is behind more messages than one cycle reads. Which of them have arrived
// is the socket's to decide: the test repeats until the first cycle was a full one.
TEST_F(ControlAgentTest, LeasesAreNotJudgedWhileMessagesWait) {
  constexpr int kMessagesPerCycle = 256, kConnections = 4, kEach = 120;
  const wire::Heartbeat stranger = {.session = 1};  // renews nothing
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::vector<std::unique_ptr<wire::ControlClient>> clients;
    for (int i = 0; i < kConnections; ++i) {
      clients.push_back(Connect());
      ASSERT_TRUE(Ask<wire::Fenced>(*clients.back(), stranger).has_value());
    }
    const std::int64_t start_ns = clock_.NowNs();
    const std::uint64_t session = Join(*clients[0], {.name = "a"}).session;
    const std::int64_t spent_ms = (clock_.NowNs() - start_ns) / kNanosPerMilli;
    if (spent_ms > 500) continue;
    Pass(lease_ms_ - 500 - spent_ms);
    for (const auto& client : clients) {
      for (int i = 0; i < kEach; ++i) ASSERT_EQ(client->Send(stranger), wire::SendStatus::kOk);
    }
    ASSERT_EQ(clients[0]->Send(wire::Heartbeat{.session = session}), wire::SendStatus::kOk);
    clients[0]->Poll(50);    // nothing comes: time for the sockets, of which no verdict depends
    clock_.AdvanceMs(1000);  // the lease is over, and this is no stall
    if (control_->DoWork() == kMessagesPerCycle) {
      // The cycle's own status, from after the point where leases would have been judged.
      EXPECT_NE(control_->Status().find("\"actors\":1"), std::string::npos) << control_->Status();
      return;
    }
    Ask<wire::GoodbyeAck>(*clients[0], wire::Goodbye{session, 0});
  }
  FAIL() << "never did as many messages wait as a cycle reads";
}

TEST_F(ControlAgentTest, AnswerOfASessionThatWasFencedMeanwhileIsNotSent) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  const std::uint64_t pushed = store_agent_->pushed();
  ASSERT_EQ(client->Send(wire::GrantRequest{session, 1, 1}), wire::SendStatus::kOk);
  for (int i = 0; i < 50 && store_agent_->pushed() == pushed; ++i) CycleWithoutStore();
  ASSERT_GT(store_agent_->pushed(), pushed);
  for (int i = 0; i < 8; ++i) {  // beyond the lease, in steps that are no stall
    clock_.AdvanceMs(500);
    CycleWithoutStore();
  }
  for (int i = 0; i < 5; ++i) Cycle();  // the grant is committed, and its end
  std::vector<wire::Message> answers;
  while (true) {
    wire::ReceiveResult result = client->Receive(20);
    if (result.status != wire::ReceiveStatus::kMessage) break;
    answers.push_back(std::move(result.message));
  }
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::Fenced>(answers[0]));
}

// A fenced member forgets what it holds. A coordinator that died before it stored the end would
// give the member its session back, with numbers that were used before.
TEST_F(ControlAgentTest, MemberIsNotToldOfItsEndBeforeItIsCommitted) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  Cycle();
  for (int i = 0; i < 8; ++i) {  // beyond the lease, in steps that are no stall
    clock_.AdvanceMs(500);
    CycleWithoutStore();
  }
  ASSERT_NE(control_->Status().find("\"actors\":0"), std::string::npos);
  ASSERT_EQ(client->Send(wire::Heartbeat{.session = session}), wire::SendStatus::kOk);
  for (int i = 0; i < 5; ++i) {
    CycleWithoutStore();
    EXPECT_NE(client->Receive(10).status, wire::ReceiveStatus::kMessage);
  }
  EXPECT_TRUE(Await<wire::Fenced>(*client).has_value());
  ASSERT_EQ(client->Send(wire::Heartbeat{.session = session}), wire::SendStatus::kOk);
  EXPECT_TRUE(Await<wire::Fenced>(*client).has_value());
}

TEST_F(ControlAgentTest, FencedActorRegistersAnewAndKeepsItsRings) {
  auto client = Connect();
  const wire::Registered first = JoinActor(*client);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, first.slots[0], first.session};
  ASSERT_TRUE(Ask<wire::RingsAck>(*client, wire::RingsReady{first.session, {ring}}).has_value());
  Pass(4000);
  const wire::Registered second =
      Join(*client,
           {.name = "actor-0", .previous_session = first.session, .workers = 1, .rings = {ring}});
  EXPECT_GT(second.session, first.session);
  EXPECT_EQ(second.slots, first.slots);
}

TEST_F(ControlAgentTest, SecondLearnerIsRefusedUntilTheFirstOnesLeaseEnds) {
  auto first = Connect(), second = Connect();
  const wire::Registered one = JoinLearner(*first);
  EXPECT_EQ(one.version_first, 1U);
  EXPECT_EQ(one.version_limit, 1 + VersionBlocks::kBlock);
  const wire::Register again{.role = wire::Role::kLearner, .name = "second"};
  const auto refused = Ask<wire::Refused>(*second, again);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kLearnerTaken);
  Pass(4000);
  const wire::Registered two = Join(*second, again);
  EXPECT_EQ(two.version_first, 1 + VersionBlocks::kBlock);
  EXPECT_EQ(two.version_limit, 1 + 2 * VersionBlocks::kBlock);
}

TEST_F(ControlAgentTest, VersionBlockIsExtendedBeforeItIsUsedUp) {
  auto client = Connect();
  const std::uint64_t session = JoinLearner(*client).session;
  const auto early = Ask<wire::HeartbeatAck>(
      *client,
      wire::Heartbeat{.session = session, .policy_version = 1 + VersionBlocks::kBlock / 2});
  EXPECT_EQ(early->version_limit, 1 + VersionBlocks::kBlock);
  const auto late = Ask<wire::HeartbeatAck>(
      *client,
      wire::Heartbeat{.session = session, .policy_version = 2 + VersionBlocks::kBlock / 2});
  EXPECT_EQ(late->version_limit, 1 + VersionBlocks::kBlock);  // not before it is committed
  const auto told = Ask<wire::HeartbeatAck>(
      *client,
      wire::Heartbeat{.session = session, .policy_version = 3 + VersionBlocks::kBlock / 2});
  EXPECT_EQ(told->version_limit, 1 + 2 * VersionBlocks::kBlock);
}

TEST_F(ControlAgentTest, LearnerHearsOfRingsAndFreesTheirSlots) {
  auto learner = Connect(), actor = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  ASSERT_TRUE(Await<wire::RingList>(*learner).has_value());
  const wire::Registered joined = JoinActor(*actor);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, joined.slots[0], joined.session};
  Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}});
  const auto list = Await<wire::RingList>(*learner);
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->rings.size(), 1U);
  EXPECT_EQ(list->rings[0].path, ring.path);
  EXPECT_EQ(list->rings[0].session, joined.session);
  GetGrant(*actor, joined.session, 1);
  const auto after = Ask<wire::RingList>(
      *learner, wire::RingGone{learner_session, ring.path, wire::RingEnd::kOwnerDead, ""});
  ASSERT_TRUE(after.has_value());
  EXPECT_TRUE(after->rings.empty());
  // The owner died: its session is fenced, its tokens are free.
  EXPECT_TRUE(Ask<wire::Fenced>(*actor, wire::Heartbeat{.session = joined.session}).has_value());
  Pass(1000);  // the status is half a second old at most
  EXPECT_NE(control_->Status().find("\"actors\":0"), std::string::npos);
  EXPECT_EQ(CheckAccount(), 0);
}

// A remote stream ends by silence alone: its process may live, and comes back with the same ring.
TEST_F(ControlAgentTest, ActorWhoseStreamEndedBySilenceGetsSlotsForTheSameRings) {
  auto learner = Connect(), actor = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  ASSERT_TRUE(Await<wire::RingList>(*learner).has_value());
  const wire::Registered joined = JoinActor(*actor);
  wire::RingInfo ring{wire::RemoteRingPath(0x5, 0), 0, joined.slots[0], joined.session};
  Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}});
  ASSERT_EQ(Await<wire::RingList>(*learner)->rings.at(0).path, ring.path);
  const wire::RingGone silent{learner_session, ring.path, wire::RingEnd::kOwnerDead, "silent"};
  ASSERT_TRUE(Ask<wire::RingList>(*learner, silent)->rings.empty());
  ASSERT_TRUE(Ask<wire::Fenced>(*actor, wire::Heartbeat{.session = joined.session}).has_value());
  const wire::Registered again =
      Join(*actor,
           {.name = "actor-0", .previous_session = joined.session, .workers = 1, .rings = {ring}});
  EXPECT_NE(again.session, joined.session);
  ring.slot = again.slots.at(0);
  ring.session = again.session;
  Ask<wire::RingsAck>(*actor, wire::RingsReady{again.session, {ring}});
  const auto list = Await<wire::RingList>(*learner);
  ASSERT_EQ(list->rings.size(), 1U);
  EXPECT_EQ(list->rings[0].path, ring.path);
  EXPECT_EQ(list->rings[0].session, again.session);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(ControlAgentTest, LearnerIsToldWhichRingsHaveAnOwnerWhoseLeaseIsOver) {
  auto learner = Connect(), actor = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  const wire::Registered joined = JoinActor(*actor);
  const wire::RingInfo ring{wire::RemoteRingPath(0x5, 0), 0, joined.slots[0]};
  Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}});
  std::optional<wire::RingList> list = Await<wire::RingList>(*learner);
  while (list.has_value() && list->rings.empty()) list = Await<wire::RingList>(*learner);
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->rings.size(), 1U);
  EXPECT_EQ(list->rings[0].session, joined.session);
  const std::uint64_t revision = list->revision;
  for (std::int64_t ms = 0; ms <= lease_ms_; ms += 500) {
    ASSERT_TRUE(Ask<wire::HeartbeatAck>(
        *learner, wire::Heartbeat{.session = learner_session, .rings_revision = revision}));
    Pass(500);
  }
  list = Await<wire::RingList>(*learner);
  ASSERT_TRUE(list.has_value());
  EXPECT_GT(list->revision, revision);
  ASSERT_EQ(list->rings.size(), 1U) << "it stays until the learner has taken its last row";
  EXPECT_EQ(list->rings[0].session, 0U);
  EXPECT_EQ(list->rings[0].owner, joined.session);
}

// The rings of one actor do not end together: the learner takes each to its last row. The actor has
// come back when the second ends, and the learner says the first one's end again.
TEST_F(ControlAgentTest, LateWordOfARingThatIsOwnedAnewEndsNoSession) {
  auto learner = Connect(), actor = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  ASSERT_TRUE(Await<wire::RingList>(*learner).has_value());
  const wire::Registered first = JoinActor(*actor, 2);
  std::vector<wire::RingInfo> rings;
  for (std::uint32_t worker = 0; worker < 2; ++worker) {
    rings.push_back({wire::RemoteRingPath(0x5, worker), worker, first.slots.at(worker)});
  }
  Ask<wire::RingsAck>(*actor, wire::RingsReady{first.session, rings});
  ASSERT_EQ(Await<wire::RingList>(*learner)->rings.size(), 2U);
  const auto end_of = [&](std::uint32_t worker, std::uint64_t owner) {
    return Ask<wire::RingList>(
        *learner, wire::RingGone{learner_session, rings[worker].path, wire::RingEnd::kOwnerDead,
                                 "silent", owner});
  };
  const auto left = end_of(0, first.session);
  ASSERT_EQ(left->rings.size(), 1U);
  EXPECT_EQ(left->rings[0].owner, first.session);
  EXPECT_EQ(left->rings[0].session, 0U) << "its owner has ended";
  ASSERT_TRUE(Ask<wire::Fenced>(*actor, wire::Heartbeat{.session = first.session}).has_value());

  const wire::Registered again = Join(
      *actor, {.name = "actor-0", .previous_session = first.session, .workers = 2, .rings = rings});
  ASSERT_NE(again.session, first.session);
  for (std::uint32_t worker = 0; worker < 2; ++worker) rings[worker].slot = again.slots.at(worker);
  Ask<wire::RingsAck>(*actor, wire::RingsReady{again.session, rings});
  std::optional<wire::RingList> list = Await<wire::RingList>(*learner);
  while (list.has_value() && list->rings.size() < 2) list = Await<wire::RingList>(*learner);
  GetGrant(*actor, again.session, 1);
  for (const std::uint32_t worker : {0U, 1U, 0U}) {
    list = end_of(worker, first.session);
    ASSERT_TRUE(list.has_value()) << "the learner hears what there is instead";
    ASSERT_EQ(list->rings.size(), 2U);
    for (const wire::RingInfo& ring : list->rings) {
      EXPECT_EQ(ring.owner, again.session);
      EXPECT_EQ(ring.session, again.session);
    }
  }
  EXPECT_TRUE(
      Ask<wire::HeartbeatAck>(*actor, wire::Heartbeat{.session = again.session}).has_value());
  EXPECT_EQ(end_of(1, again.session)->rings.size(), 1U);
  EXPECT_TRUE(Ask<wire::Fenced>(*actor, wire::Heartbeat{.session = again.session}).has_value());
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(ControlAgentTest, StaleRingRevisionInAHeartbeatBringsTheList) {
  auto learner = Connect();
  const std::uint64_t session = JoinLearner(*learner).session;
  const auto list = Await<wire::RingList>(*learner);
  ASSERT_TRUE(list.has_value());
  wire::Heartbeat beat{.session = session, .rings_revision = list->revision + 5};
  EXPECT_TRUE(Ask<wire::RingList>(*learner, beat).has_value());
}

TEST_F(ControlAgentTest, AbandonedTokensAreGrantedAgain) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  const wire::HeldRange all{0, 1, wire::Bitmap(wire::kRangeBitmapBytes, 0xff)};
  EXPECT_TRUE(Ask<wire::AbandonAck>(*client, wire::Abandon{session, 1, "env_error", {all}}));
  EXPECT_EQ(GetGrant(*client, session, 2).ranges[0].attempt, 2U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(ControlAgentTest, MessageOnlyACoordinatorSendsIsRefusedAndCounted) {
  auto client = Connect();
  const auto refused = Ask<wire::Refused>(*client, wire::GoodbyeAck{1});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kMalformed);
  Pass(1000);
  EXPECT_NE(registry_->SerializeText().find("tetrion_link_malformed_total{peer=\"members\"} 1"),
            std::string::npos);
}

TEST_F(ControlAgentTest, PortInUseIsAUsageError) {
  ControlConfig config = config_;
  config.bind = control_->endpoint();
  EXPECT_THROW(ControlAgent(config, stored_, *store_agent_, *metrics_, clock_), Error);
}

TEST_F(ControlAgentTest, DrainStopsGrantsAndEndsWhenMembersAndRingsAreGone) {
  auto actor = Connect(), learner = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  const wire::Registered joined = JoinActor(*actor);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, joined.slots[0], joined.session};
  Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}});
  control_->RequestDrain();
  EXPECT_TRUE(Await<wire::HeartbeatAck>(*actor)->drain);
  EXPECT_TRUE(Ask<wire::HeartbeatAck>(*actor, wire::GrantRequest{joined.session, 1, 1})->drain);
  auto late = Connect();
  const auto refused = Ask<wire::Refused>(*late, wire::Register{.name = "late"});
  EXPECT_EQ(refused->reason, wire::RefuseReason::kDraining);
  EXPECT_TRUE(Ask<wire::GoodbyeAck>(*actor, wire::Goodbye{joined.session, 0}).has_value());
  EXPECT_FALSE(control_->finished());
  Ask<wire::RingList>(*learner,
                      wire::RingGone{learner_session, ring.path, wire::RingEnd::kClosed, ""});
  EXPECT_FALSE(control_->finished());
  EXPECT_TRUE(Ask<wire::GoodbyeAck>(*learner, wire::Goodbye{learner_session, 0}).has_value());
  Cycle();
  EXPECT_TRUE(control_->finished());
}

TEST_F(ControlAgentTest, FiguresOfALearnerThatHasGoneStayUntilTheNextOneComes) {
  auto learner = Connect(), next = Connect();
  const std::uint64_t session = JoinLearner(*learner).session;
  Ask<wire::HeartbeatAck>(
      *learner,
      wire::Heartbeat{.session = session, .stats = {{"updates", 6312}, {"updates_per_s", 79}}});
  Ask<wire::GoodbyeAck>(*learner, wire::Goodbye{session, 0});
  Pass(1000);
  EXPECT_NE(control_->Status().find(R"("learner_up":false)"), std::string::npos);
  EXPECT_NE(control_->Status().find(R"("learner":{"updates":6312})"), std::string::npos)
      << control_->Status();
  const std::uint64_t second = JoinLearner(*next).session;
  Pass(1000);
  EXPECT_NE(control_->Status().find(R"("learner":{})"), std::string::npos) << control_->Status();
  Ask<wire::HeartbeatAck>(*next, wire::Heartbeat{.session = second, .stats = {{"updates", 7000}}});
  for (int i = 0; i < 5; ++i) Pass(1000);  // killed: its lease runs out
  EXPECT_NE(control_->Status().find(R"("learner":{"updates":7000})"), std::string::npos)
      << control_->Status();
}

TEST_F(ControlAgentTest, DrainWithoutALearnerDoesNotWaitForRingsNobodyWillEnd) {
  auto actor = Connect();
  const wire::Registered joined = JoinActor(*actor);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, joined.slots[0], joined.session};
  Ask<wire::RingsAck>(*actor, wire::RingsReady{joined.session, {ring}});
  control_->RequestDrain();
  EXPECT_TRUE(Await<wire::HeartbeatAck>(*actor)->drain);
  EXPECT_FALSE(control_->finished());
  EXPECT_TRUE(Ask<wire::GoodbyeAck>(*actor, wire::Goodbye{joined.session, 0}).has_value());
  Cycle();
  EXPECT_TRUE(control_->finished());
}

TEST_F(ControlAgentTest, DrainTimeOutEndsTheRunWithMembersLeft) {
  auto actor = Connect();
  const std::uint64_t session = JoinActor(*actor).session;
  control_->RequestDrain();
  for (int i = 0; i < 19; ++i) {
    Ask<wire::HeartbeatAck>(*actor, wire::Heartbeat{.session = session});
    EXPECT_FALSE(control_->finished());
    Pass(900);
  }
  for (int i = 0; i < 5; ++i) {
    Ask<wire::HeartbeatAck>(*actor, wire::Heartbeat{.session = session});
    Pass(900);
  }
  EXPECT_TRUE(control_->finished());
}

}  // namespace
}  // namespace tetrion::coordinator
