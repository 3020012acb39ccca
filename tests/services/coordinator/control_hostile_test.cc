#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lib/frame/token.h"
#include "tests/services/coordinator/fixture.h"

// What members of other runs, other processes and broken members say changes nothing of the
// account.
namespace tetrion::coordinator {
namespace {

constexpr RegionHold kFree;

class ControlHostileTest : public CoordinatorFixture {
 protected:
  // An actor with one granted range and some steps told.
  void SetUp() override {
    lease_ms_ = 20'000;
    CoordinatorFixture::SetUp();
    actor_ = Connect();
    session_ = JoinActor(*actor_).session;
    GetGrant(*actor_, session_, 1);
    Ask<wire::HeartbeatAck>(*actor_, wire::Heartbeat{.session = session_, .env_steps = 100});
  }
  // Of a status that is no older than the call.
  bool StatusHas(const std::string& text) {
    clock_.AdvanceMs(500);
    Cycle();
    return control_->Status().find(text) != std::string::npos;
  }
  // The session is as it was, and its tokens too.
  void ExpectUntouched() {
    EXPECT_TRUE(StatusHas("\"actors\":1")) << control_->Status();
    EXPECT_TRUE(StatusHas("\"outstanding\":256")) << control_->Status();
    EXPECT_TRUE(StatusHas("\"env_steps\":100,")) << control_->Status();
    EXPECT_TRUE(Ask<wire::HeartbeatAck>(*actor_, wire::Heartbeat{.session = session_}).has_value());
    EXPECT_EQ(CheckAccount(), 0);
  }
  void ExpectImpossible(const wire::Message& message, const std::string& part) {
    const auto refused = Ask<wire::Refused>(*actor_, message);
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->reason, wire::RefuseReason::kImpossible);
    EXPECT_NE(refused->text.find(part), std::string::npos) << refused->text;
    EXPECT_TRUE(StatusHas("\"actors\":0"));
    EXPECT_TRUE(StatusHas("\"done\":0")) << "nothing of the message counts";
    EXPECT_EQ(CheckAccount(), 0);
  }
  void ExpectTaken(wire::ControlClient& learner) {
    const auto refused = Ask<wire::Refused>(
        learner, wire::Register{.role = wire::Role::kLearner, .name = "learner"});
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->reason, wire::RefuseReason::kLearnerTaken);
  }
  wire::ReportBatch Report(const wire::EpisodeReport& episode) const {
    wire::ReportBatch batch = Batch(session_, 1, 0, 3);
    batch.episodes[2] = episode;
    return batch;
  }

  std::unique_ptr<wire::ControlClient> actor_;
  std::uint64_t session_ = 0;
};

TEST_F(ControlHostileTest, MemberOfAnotherRunIsToldSoAndCountsNothing) {
  // The same session number and process, as when both runs began alike.
  auto other = ConnectAs({.run_id = stored_.run_id + 1, .process = last_process_});
  for (const wire::Message& message :
       {wire::Message(Batch(session_, 1, 0, 60)), wire::Message(wire::Goodbye{session_, 900}),
        wire::Message(wire::Heartbeat{.session = session_, .env_steps = 5000}),
        wire::Message(wire::Register{.name = "a", .previous_session = session_}),
        wire::Message(wire::GrantRequest{session_, 2, 1})}) {
    SCOPED_TRACE(message.index());
    const auto refused = Ask<wire::Refused>(*other, message);
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->reason, wire::RefuseReason::kOtherRun);
    EXPECT_NE(refused->text.find("run test"), std::string::npos);
  }
  ExpectUntouched();
}

TEST_F(ControlHostileTest, AnotherProcessCannotSpeakForASession) {
  auto other = Connect();
  const wire::HeldRange all{0, 1, wire::Bitmap(wire::kRangeBitmapBytes, 0xff)};
  for (const wire::Message& message :
       {wire::Message(Batch(session_, 1, 0, 60)), wire::Message(wire::Goodbye{session_, 900}),
        wire::Message(wire::Heartbeat{.session = session_, .env_steps = 101}),
        wire::Message(wire::GrantRequest{session_, std::uint64_t{1} << 63, 1}),
        wire::Message(wire::Abandon{session_, 1, "drain", {all}}),
        wire::Message(wire::RingsReady{session_, {}})}) {
    ASSERT_EQ(other->Send(message), wire::SendStatus::kOk);
    for (int i = 0; i < 5; ++i) Cycle();
    EXPECT_EQ(other->Receive(20).status, wire::ReceiveStatus::kTimeout);
  }
  ExpectUntouched();
  const wire::Grant grant = GetGrant(*actor_, session_, 2);  // it is not starved
  ASSERT_EQ(grant.ranges.size(), 1U);
  EXPECT_EQ(grant.ranges[0].first_id, 256U);
}

TEST_F(ControlHostileTest, TakeoverOfASessionNeedsItsProcess) {
  auto other = Connect();
  const wire::Registered joined = Join(
      *other, {.name = "actor-0", .previous_session = session_, .held_below = ~0ULL, .workers = 1});
  EXPECT_NE(joined.session, session_);
  EXPECT_TRUE(StatusHas("\"outstanding\":256")) << control_->Status();
  EXPECT_TRUE(Ask<wire::HeartbeatAck>(*actor_, wire::Heartbeat{.session = session_}).has_value());
}

TEST_F(ControlHostileTest, MessageWithoutAProcessIsMalformed) {
  auto nobody = ConnectAs({.run_id = stored_.run_id, .process = 0});
  const auto refused = Ask<wire::Refused>(*nobody, wire::Register{.name = "a"});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kMalformed);
}

TEST_F(ControlHostileTest, LengthBeyondMaxStepsIsImpossible) {
  ExpectImpossible(
      Report({.token_id = 2, .attempt = 1, .length_steps = config_.run_config.max_steps + 1}),
      "length");
}
TEST_F(ControlHostileTest, LaneOutsideTheWorkerIsImpossible) {
  ExpectImpossible(Report({.token_id = 2,
                           .attempt = 1,
                           .lane = static_cast<std::uint16_t>(config_.run_config.lanes)}),
                   "lane");
}
TEST_F(ControlHostileTest, WorkerOutsideTheSessionIsImpossible) {
  ExpectImpossible(Report({.token_id = 2, .attempt = 1, .worker = 1}), "worker");
}
TEST_F(ControlHostileTest, VersionThatWasNeverReservedIsImpossible) {
  ExpectImpossible(Report({.token_id = 2, .attempt = 1, .policy_version = 1}), "version");
}
TEST_F(ControlHostileTest, ReturnThatIsNoNumberIsImpossible) {
  ExpectImpossible(Report({.token_id = 2, .attempt = 1, .episode_return = NAN}), "finite");
}
TEST_F(ControlHostileTest, InfiniteReturnIsImpossible) {
  ExpectImpossible(
      Report(
          {.token_id = 2, .attempt = 1, .episode_return = std::numeric_limits<float>::infinity()}),
      "finite");
}
TEST_F(ControlHostileTest, RequestNumberWithAGapIsImpossible) {
  ExpectImpossible(wire::GrantRequest{session_, 3, 1}, "request 3 follows 1");
}
TEST_F(ControlHostileTest, MoreStepsThanTheTokensAllowAreImpossible) {
  const std::uint64_t most = std::uint64_t{256} * config_.run_config.max_steps;
  ASSERT_TRUE(
      Ask<wire::HeartbeatAck>(*actor_, wire::Heartbeat{.session = session_, .env_steps = most})
          .has_value());
  ExpectImpossible(wire::Heartbeat{.session = session_, .env_steps = most + 1}, "steps");
  EXPECT_TRUE(StatusHas("\"env_steps\":" + std::to_string(most) + ","));
}
TEST_F(ControlHostileTest, StepsThatOverflowDoNotEndTheRun) {
  ExpectImpossible(wire::Heartbeat{.session = session_, .env_steps = std::uint64_t{1} << 62},
                   "steps");
  EXPECT_FALSE(control_->draining());
}

TEST_F(ControlHostileTest, LearnerCannotTellAVersionBeyondItsBlock) {
  auto learner = Connect();
  const std::uint64_t leads = JoinLearner(*learner).session;
  const auto refused = Ask<wire::Refused>(
      *learner, wire::Heartbeat{.session = leads, .policy_version = 1 + VersionBlocks::kBlock});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kImpossible);
}

TEST_F(ControlHostileTest, SessionIsGrantedNoMoreThanItCanNeed) {
  std::uint64_t request = 1, granted = 256;
  const std::uint64_t most = MaxTokensHeld(1, static_cast<std::uint64_t>(config_.run_config.lanes));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(actor_->Send(wire::GrantRequest{session_, ++request, 64}), wire::SendStatus::kOk);
    const auto grant = AwaitBriefly<wire::Grant>(*actor_);
    if (!grant.has_value()) break;
    granted += grant->ranges.size() * wire::kRangeTokens;
  }
  EXPECT_LE(granted, most);
  EXPECT_GT(granted + wire::kRangeTokens, most);
  // Settled tokens make room again, under the same request number.
  Ask<wire::ReportAck>(*actor_, Batch(session_, 1, 0, 256));
  EXPECT_EQ(GetGrant(*actor_, session_, request, 64).ranges.size(), 1U);
}

TEST_F(ControlHostileTest, UnusableRingEndsItsProcessForGoodWithTheReason) {
  auto learner = Connect();
  const std::uint64_t leads = JoinLearner(*learner).session;
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, 0, session_};
  Ask<wire::RingsAck>(*actor_, wire::RingsReady{session_, {ring}});
  Ask<wire::RingList>(*learner, wire::RingGone{leads, ring.path, wire::RingEnd::kUnattachable,
                                               "no such file; share the folder"});
  const auto refused = Await<wire::Refused>(*actor_);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kRingUnusable);
  EXPECT_NE(refused->text.find("share the folder"), std::string::npos);
  EXPECT_TRUE(StatusHas("\"actors\":0"));
  // The answer may be lost: asking again finds the same one.
  const auto again = Ask<wire::Refused>(
      *actor_, wire::Register{.name = "actor-0", .previous_session = session_, .workers = 1});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->reason, wire::RefuseReason::kRingUnusable);
  auto fresh = Connect();
  EXPECT_NE(JoinActor(*fresh).session, 0U);  // a new process has a new ring
}

TEST_F(ControlHostileTest, DeadLearnerIsReplacedAtOnceButOneThatIsStartingIsNot) {
  auto first = Connect(), second = Connect(), third = Connect();
  const std::uint64_t one = JoinLearner(*first).session;
  const wire::Register again{.role = wire::Role::kLearner, .name = "learner"};
  control_->SawLearnerRegion(kFree, clock_.NowNs());  // of a learner before it
  ASSERT_NO_FATAL_FAILURE(ExpectTaken(*second));
  control_->SawLearnerRegion(RegionHold{.held = true, .owner = 5}, clock_.NowNs());
  Ask<wire::HeartbeatAck>(*first,
                          wire::Heartbeat{.session = one, .region_held = true, .region_owner = 5});
  ASSERT_NO_FATAL_FAILURE(ExpectTaken(*second));
  clock_.AdvanceMs(1);
  control_->SawLearnerRegion(kFree, clock_.NowNs());
  EXPECT_NE(Join(*second, again).session, one);
  ASSERT_NO_FATAL_FAILURE(ExpectTaken(*third));
}

TEST_F(ControlHostileTest, LearnerOnAnotherHostIsNotEndedByWhatLiesHere) {
  auto far = Connect(), second = Connect();
  const std::uint64_t leads = JoinLearner(*far).session;
  const RegionHold others = {.held = true, .owner = 6};
  for (const auto& [before, after] :
       std::vector<std::pair<std::optional<RegionHold>, std::optional<RegionHold>>>{
           {kFree, kFree}, {std::nullopt, std::nullopt}, {others, kFree}}) {
    control_->SawLearnerRegion(before, clock_.NowNs());
    Ask<wire::HeartbeatAck>(
        *far, wire::Heartbeat{.session = leads, .region_held = true, .region_owner = 5});
    clock_.AdvanceMs(1);
    control_->SawLearnerRegion(after, clock_.NowNs());
    ASSERT_NO_FATAL_FAILURE(ExpectTaken(*second));
  }
}

class FewMembersTest : public CoordinatorFixture {
 protected:
  FewMembersTest() { config_.max_sessions = 3; }
};

TEST_F(FewMembersTest, AMemberBeyondTheMostIsRefusedUntilOneLeaves) {
  std::vector<std::unique_ptr<wire::ControlClient>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(Connect());
    EXPECT_NE(Join(*members.back(), {.name = "idle"}).session, 0U);
  }
  auto last = Connect();
  const auto refused = Ask<wire::Refused>(*last, wire::Register{.name = "one-more"});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kNoSlot);
  EXPECT_THAT(refused->text, ::testing::HasSubstr("3 members"));
  const std::uint64_t first = Join(*members[0], {.name = "idle"}).session;
  Ask<wire::GoodbyeAck>(*members[0], wire::Goodbye{.session = first});
  EXPECT_NE(Join(*last, {.name = "one-more"}).session, 0U);
}

class ShortLeaseTest : public CoordinatorFixture {
 protected:
  ShortLeaseTest() { lease_ms_ = 1500; }
};

TEST_F(ShortLeaseTest, ProcessThatIsFencedTooOftenIsRefused) {
  auto client = Connect();
  const std::uint64_t process = last_process_;
  int sessions = 0;
  std::uint64_t previous = 0;
  for (; sessions < ProcessTable::kMaxSessions + 1; ++sessions) {
    ASSERT_EQ(client->Send(wire::Register{.name = "b", .previous_session = previous}),
              wire::SendStatus::kOk);
    const auto registered = AwaitBriefly<wire::Registered>(*client);
    if (!registered.has_value()) break;
    previous = registered->session;
    for (int i = 0; i < 3; ++i) {
      clock_.AdvanceMs(600);  // no stall
      Cycle();
    }
  }
  ASSERT_EQ(sessions, ProcessTable::kMaxSessions);
  const auto refused =
      Ask<wire::Refused>(*client, wire::Register{.name = "b", .previous_session = previous});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, wire::RefuseReason::kTooManySessions);
  clock_.AdvanceMs(3600 * 1000);
  EXPECT_NE(Join(*Connect(process), {.name = "b", .previous_session = previous}).session, 0U);
}

TEST_F(ShortLeaseTest, StallBelowASecondGivesAFullLeaseTooWhereItIsHalfALease) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  Cycle();
  clock_.AdvanceMs(700);  // no stall
  control_->DoWork();
  clock_.AdvanceMs(850);
  control_->DoWork();
  EXPECT_TRUE(Ask<wire::HeartbeatAck>(*client, wire::Heartbeat{.session = session}).has_value());
}

}  // namespace
}  // namespace tetrion::coordinator
