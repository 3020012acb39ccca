#include "services/learner/link_agent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/wire/codec.h"
#include "lib/wire/socket.h"

namespace tetrion::learner {
namespace {

using wire::Message;

// The agent against a coordinator that the test plays by hand, over a real socket and under a clock
// that the test moves.
class LearnerLinkTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kOwner = 6;  // of every ring that is listed

  LearnerLinkTest() : server_("tcp://127.0.0.1:0") {
    agent_ = std::make_unique<LearnerLinkAgent>(
        MemberConfig{.name = "learner",
                     .http_endpoint = "127.0.0.1:9",
                     .shm_dir = "/dev/shm/x",
                     .drain_timeout_ns = 10 * kNanosPerSecond,
                     .given = {{.key = "lanes", .value = "8"}},
                     .link = {.endpoint = [this] { return server_.endpoint(); }}},
        LearnerLinkAgent::Hooks{.start_build = [this](const wire::Registered&) { ++builds_; },
                                .built = [this] { return built_ ? built_() : true; },
                                .fill =
                                    [this](wire::Heartbeat& heartbeat) {
                                      heartbeat.policy_version = stops_ == 0 ? 12 : 13;
                                      heartbeat.rows_ingested = 345;
                                      heartbeat.stats = {{"updates", 6}};
                                    },
                                .failed = [this] { return failed_; },
                                .lanes_done = [this] { return lanes_done_; },
                                .batch_waits = [this] { return batch_waits_; },
                                .start_stop = [this] { ++stops_; },
                                .stopped = [this] { return stopped_ ? stopped_() : true; }},
        board_, versions_, drain_, clock_);
  }

  // Runs the agent until the coordinator has a message of type T from it; RingGone messages on the
  // way are counted.
  template <typename T>
  T Expect() {
    for (int i = 0; i < 4000; ++i) {
      (void)agent_->DoWork();
      clock_.AdvanceMs(1);
      while (auto received = server_.Receive()) {
        peer_ = received->peer;
        const wire::DecodeResult decoded = wire::Decode(received->bytes);
        if (std::holds_alternative<wire::RingGone>(decoded.message)) ++ring_gones_;
        if (const T* message = std::get_if<T>(&decoded.message)) return *message;
      }
    }
    ADD_FAILURE() << "the agent never sent it";
    return {};
  }
  void Answer(const Message& message) {
    ASSERT_EQ(server_.Send(peer_, message), wire::SendStatus::kOk);
    for (int i = 0; i < 20; ++i) (void)agent_->DoWork();
  }
  void BeginSession(std::uint64_t session = 7, std::uint64_t epoch = 1) {
    Expect<wire::Register>();
    Answer(Welcome(session, epoch));
  }
  static wire::Registered Welcome(std::uint64_t session, std::uint64_t epoch) {
    return {.session = session,
            .epoch = epoch,
            .version_first = 101,
            .version_limit = 104,
            .heartbeat_ms = 20};
  }
  void GiveList(std::uint64_t revision, const std::vector<std::string>& paths) {
    wire::RingList list = {.session = 7, .revision = revision};
    for (const std::string& path : paths) {
      list.rings.push_back({.path = path, .slot = 0, .owner = kOwner});
    }
    Answer(list);
  }
  // The first heartbeat that says that it drains.
  wire::Heartbeat BeginDrain() {
    drain_ = true;
    wire::Heartbeat heartbeat;
    while (heartbeat.phase != "draining") heartbeat = Expect<wire::Heartbeat>();
    return heartbeat;
  }
  int StatusOfRefusal(wire::RefuseReason reason) {
    Expect<wire::Register>();
    try {
      Answer(wire::Refused{.reason = reason, .text = "because of the test"});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("because of the test"), std::string::npos);
      return static_cast<int>(error.code());
    }
    return 0;
  }

  FakeClock clock_;
  wire::ControlServer server_;
  wire::PeerId peer_;
  RingBoard board_;
  Versions versions_;
  std::atomic<bool> drain_{false};
  std::function<bool()> built_, stopped_;  // empty: at once
  int builds_ = 0, stops_ = 0, ring_gones_ = 0;
  bool lanes_done_ = true, batch_waits_ = false, failed_ = false;
  std::unique_ptr<LearnerLinkAgent> agent_;
};

TEST_F(LearnerLinkTest, RegistersAsTheLearnerBuildsAndTakesItsVersions) {
  EXPECT_NE(agent_->Problem(), "");
  const auto message = Expect<wire::Register>();
  EXPECT_EQ(message.role, wire::Role::kLearner);
  EXPECT_EQ(message.name, "learner");
  EXPECT_EQ(message.http_endpoint, "127.0.0.1:9");
  ASSERT_EQ(message.given.size(), 1U);
  EXPECT_EQ(message.given[0].value, "8");
  EXPECT_EQ(message.previous_session, 0U);
  EXPECT_EQ(builds_, 0);
  Answer(Welcome(7, 1));
  EXPECT_EQ(builds_, 1);
  EXPECT_EQ(versions_.After(0), 101U);
  EXPECT_EQ(versions_.After(103), 0U);
  EXPECT_EQ(agent_->Problem(), "");
}

TEST_F(LearnerLinkTest, RestartedCoordinatorFindsTheSameLearnerNotBuiltTwice) {
  BeginSession();
  GiveList(3, {"/r"});
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 2});
  EXPECT_EQ(Expect<wire::Register>().previous_session, 7U);
  Answer(Welcome(7, 2));
  EXPECT_EQ(builds_, 1);
  EXPECT_EQ(Expect<wire::Heartbeat>().rings_revision, 0U);  // its list is unknown to this epoch
}

TEST_F(LearnerLinkTest, RunThatWasResumedWithOtherSettingsEndsIt) {
  Expect<wire::Register>();
  wire::Registered welcome = Welcome(7, 1);
  welcome.run_config = "lanes = 8\n";
  Answer(welcome);
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 2});
  Expect<wire::Register>();
  welcome.epoch = 2;
  welcome.run_config = "lanes = 9\n";
  try {
    Answer(welcome);
    ADD_FAILURE() << "it goes on with the old settings";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  }
}

TEST_F(LearnerLinkTest, HeartbeatsCarryTheListsRevisionAndTheLearnersFigures) {
  BeginSession();
  const auto before = Expect<wire::Heartbeat>();
  EXPECT_EQ(before.session, 7U);
  EXPECT_EQ(before.phase, "running");
  EXPECT_EQ(before.rings_revision, 0U);
  EXPECT_EQ(before.policy_version, 12U);
  EXPECT_EQ(before.rows_ingested, 345U);
  ASSERT_EQ(before.stats.size(), 1U);
  GiveList(9, {"/a"});
  wire::Heartbeat after;
  for (int i = 0; i < 3 && after.rings_revision != 9; ++i) after = Expect<wire::Heartbeat>();
  EXPECT_EQ(after.rings_revision, 9U);
}

TEST_F(LearnerLinkTest, HeartbeatsAndRingListsGoOnWhileTheLearnerIsBuilt) {
  bool built = false;
  built_ = [&] { return built; };
  BeginSession();
  GiveList(3, {"/a"});
  wire::Heartbeat heartbeat;
  for (int i = 0; i < 10; ++i) heartbeat = Expect<wire::Heartbeat>();
  EXPECT_EQ(heartbeat.phase, "starting");
  EXPECT_FALSE(heartbeat.region_held);
  EXPECT_EQ(heartbeat.policy_version, 0U);  // there are no figures yet
  EXPECT_EQ(heartbeat.rings_revision, 3U);
  EXPECT_NE(agent_->Problem(), "");  // not ready
  EXPECT_FALSE(board_.Empty());

  built = true;
  while (!heartbeat.region_held) heartbeat = Expect<wire::Heartbeat>();
  EXPECT_EQ(heartbeat.phase, "running");
  EXPECT_EQ(heartbeat.policy_version, 12U);
  EXPECT_EQ(agent_->Problem(), "");
  EXPECT_EQ(builds_, 1);
}

TEST_F(LearnerLinkTest, RegionStaysHeldInALaterSessionAndInADrain) {
  BeginSession();
  EXPECT_TRUE(Expect<wire::Heartbeat>().region_held);
  Answer(wire::Fenced{.session = 7});
  BeginSession(8);
  EXPECT_TRUE(Expect<wire::Heartbeat>().region_held);
  EXPECT_TRUE(BeginDrain().region_held);
}

TEST_F(LearnerLinkTest, SessionFencedDuringTheBuildIsFollowedByOneThatBuildsNothingAnew) {
  bool built = false;
  built_ = [&] { return built; };
  BeginSession();
  Answer(wire::Fenced{.session = 7});
  BeginSession(8);
  EXPECT_EQ(Expect<wire::Heartbeat>().phase, "starting");
  EXPECT_EQ(builds_, 1);
}

TEST_F(LearnerLinkTest, WhatTheBuildThrowsEndsTheAgent) {
  built_ = []() -> bool { throw Error(ExitCode::kConfig, "holds checkpoints already"); };
  Expect<wire::Register>();
  const auto welcome = [&] { Answer(Welcome(7, 1)); };
  EXPECT_THROW(welcome(), Error);
}

TEST_F(LearnerLinkTest, DrainDuringTheBuildWaitsForItThenForTheRings) {
  bool built = false;
  built_ = [&] { return built; };
  BeginSession();
  GiveList(1, {});
  drain_ = true;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Expect<wire::Heartbeat>().region_held);
  EXPECT_FALSE(agent_->Done());
  built = true;
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainThatABuildOutlastsSaysGoodbyeWithoutTraining) {
  built_ = [] { return false; };
  BeginSession();
  drain_ = true;
  (void)agent_->DoWork();
  clock_.AdvanceMs(11'000);
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(stops_, 0);
}

TEST_F(LearnerLinkTest, HeartbeatAnswersExtendTheVersionsAndTellTheReturn) {
  BeginSession();
  EXPECT_EQ(versions_.After(103), 0U);
  Expect<wire::Heartbeat>();
  EXPECT_TRUE(std::isnan(agent_->mean_return())) << "before the first episode";
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .version_limit = 104, .mean_return = 0});
  EXPECT_TRUE(std::isnan(agent_->mean_return()));
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{
      .session = 7, .epoch = 1, .version_limit = 1104, .episodes = 1, .mean_return = 23.5});
  EXPECT_EQ(versions_.After(103), 104U);
  EXPECT_EQ(agent_->mean_return(), 23.5);
}

// A checkpoint of worse weights, which it begins with, would have the return of better ones.
TEST_F(LearnerLinkTest, ReturnThatAnEarlierLearnersWeightsEarnedIsNotToldAsItsOwn) {
  BeginSession();
  const auto told = [this](std::uint64_t episodes) {
    Expect<wire::Heartbeat>();
    Answer(wire::HeartbeatAck{
        .session = 7, .epoch = 1, .version_limit = 104, .episodes = episodes, .mean_return = 9});
    return agent_->mean_return();
  };
  for (const std::uint64_t episodes : {50, 50, 149}) EXPECT_TRUE(std::isnan(told(episodes)));
  EXPECT_EQ(told(150), 9);
}

TEST_F(LearnerLinkTest, ReturnOfTheFirstLearnersEpisodesIsItsOwnFromTheFirstOn) {
  Expect<wire::Register>();
  wire::Registered welcome = Welcome(7, 1);
  welcome.version_first = 1;
  Answer(welcome);
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .episodes = 5, .mean_return = 2.5});
  EXPECT_EQ(agent_->mean_return(), 2.5);
}

TEST_F(LearnerLinkTest, LearnerThatIsFencedAsTheRunEndsKeepsTheReturnForItsLastCheckpoint) {
  BeginSession();
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1});
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .episodes = 5, .mean_return = 2.5});
  Answer(wire::Fenced{.session = 7});
  Expect<wire::Register>();
  Answer(wire::Refused{.reason = wire::RefuseReason::kDraining, .text = "the run is ending"});
  EXPECT_TRUE(agent_->run_ends());
  EXPECT_EQ(agent_->mean_return(), 2.5);
}

TEST_F(LearnerLinkTest, RingListsReachTheBoard) {
  BeginSession();
  GiveList(4, {"/a", "/b"});
  std::uint64_t seen = 0;
  std::vector<wire::RingInfo> rings;
  ASSERT_TRUE(board_.TakeList(seen, rings));
  ASSERT_EQ(rings.size(), 2U);
  EXPECT_EQ(rings[1].path, "/b");
}

TEST_F(LearnerLinkTest, EndedRingIsToldAgainUntilAListLacksIt) {
  BeginSession();
  GiveList(1, {"/a", "/b"});
  board_.AddEnded({.path = "/a", .owner = kOwner, .end = wire::RingEnd::kOwnerDead});
  const auto first = Expect<wire::RingGone>();
  EXPECT_EQ(first.session, 7U);
  EXPECT_EQ(first.path, "/a");
  EXPECT_EQ(first.owner, kOwner);
  EXPECT_EQ(first.end, wire::RingEnd::kOwnerDead);
  EXPECT_EQ(Expect<wire::RingGone>().path, "/a");
  GiveList(2, {"/a", "/b"});  // not heard yet
  EXPECT_EQ(Expect<wire::RingGone>().path, "/a");
  GiveList(3, {"/b"});
  Expect<wire::Heartbeat>();  // whatever was under way has arrived before it
  ring_gones_ = 0;
  for (int i = 0; i < 3; ++i) {
    clock_.AdvanceMs(600);
    Expect<wire::Heartbeat>();
  }
  EXPECT_EQ(ring_gones_, 0);
}

TEST_F(LearnerLinkTest, AnotherRingsEndIsToldAtOnceNotWithTheNextRepetition) {
  BeginSession();
  GiveList(1, {"/a", "/b"});
  board_.AddEnded({.path = "/a", .owner = kOwner});
  Expect<wire::RingGone>();
  board_.AddEnded({.path = "/b", .owner = kOwner});
  const std::int64_t before_ns = clock_.NowNs();
  while (Expect<wire::RingGone>().path != "/b") {
  }
  EXPECT_LT(clock_.NowNs() - before_ns, 400 * kNanosPerMilli);
}

TEST_F(LearnerLinkTest, RefusalsForGoodEndTheProcessWithTheirCodes) {
  EXPECT_EQ(StatusOfRefusal(wire::RefuseReason::kConfigMismatch), 78);
}
TEST_F(LearnerLinkTest, AnEndingRunRefusesWithTryAgain) {
  EXPECT_EQ(StatusOfRefusal(wire::RefuseReason::kDraining), 75);
}
TEST_F(LearnerLinkTest, ATakenPlaceIsAskedForAgain) {
  EXPECT_EQ(StatusOfRefusal(wire::RefuseReason::kLearnerTaken), 0);
  EXPECT_EQ(agent_->Problem(), "because of the test");
  BeginSession();  // it registers again by itself
  EXPECT_EQ(agent_->Problem(), "");
}

TEST_F(LearnerLinkTest, DrainWaitsForTheRingsThenStopsTrainingThenSaysGoodbye) {
  BeginSession();
  GiveList(1, {"/a"});
  BeginDrain();
  EXPECT_EQ(stops_, 0);
  board_.AddEnded({.path = "/a", .owner = kOwner});
  Expect<wire::RingGone>();
  EXPECT_EQ(stops_, 0);  // the coordinator does not know yet
  GiveList(2, {});
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
  EXPECT_FALSE(agent_->Done());
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(stops_, 1);
}

// The last checkpoint may take longer than a lease.
TEST_F(LearnerLinkTest, HeartbeatsGoOnWhileTrainingIsStopped) {
  bool over = false;
  stopped_ = [&] { return over; };
  BeginSession();
  GiveList(1, {});
  BeginDrain();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Expect<wire::Heartbeat>().phase, "draining");
    clock_.AdvanceMs(200);
  }
  EXPECT_EQ(stops_, 1);
  EXPECT_FALSE(agent_->Done());
  over = true;
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, ACheckpointThatCannotBeWrittenAtTheEndEndsTheAgent) {
  stopped_ = []() -> bool { throw Error(ExitCode::kTryAgain, "the disk is full"); };
  BeginSession();
  GiveList(1, {});
  drain_ = true;
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) (void)agent_->DoWork();
  };
  EXPECT_THROW(work(), Error);
}

// Otherwise the coordinator would wait for its lease.
TEST_F(LearnerLinkTest, LearnerWhoseLastCheckpointFailedTellsItsLastUpdatesAndSaysGoodbye) {
  stopped_ = []() -> bool { throw Error(ExitCode::kTryAgain, "the disk is full"); };
  BeginSession();
  GiveList(1, {});
  drain_ = true;
  EXPECT_THROW(Expect<wire::Goodbye>(), Error);
  agent_->OnClose();
  wire::Heartbeat last;
  wire::Goodbye goodbye;
  while (goodbye.session == 0 && server_.Poll(10'000).socket) {
    const Message message = wire::Decode(server_.Receive()->bytes).message;
    if (const auto* heartbeat = std::get_if<wire::Heartbeat>(&message)) last = *heartbeat;
    if (const auto* bye = std::get_if<wire::Goodbye>(&message)) goodbye = *bye;
  }
  EXPECT_EQ(goodbye.session, 7U);
  EXPECT_EQ(last.policy_version, 13U);
  EXPECT_EQ(last.session, 7U);
}

TEST_F(LearnerLinkTest, LastHeartbeatOfADrainTellsOfTheLastUpdates) {
  BeginSession();
  GiveList(1, {});
  drain_ = true;
  auto heartbeat = Expect<wire::Heartbeat>();
  while (heartbeat.policy_version == 12) heartbeat = Expect<wire::Heartbeat>();
  ASSERT_EQ(heartbeat.policy_version, 13U);
  EXPECT_EQ(heartbeat.phase, "draining");
  EXPECT_EQ(heartbeat.session, 7U);
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
}

TEST_F(LearnerLinkTest, DrainThatIsFencedWaitsForItsRingsEndsAndNoLongerForTheList) {
  BeginSession();
  GiveList(1, {"/a"});
  BeginDrain();
  Answer(wire::Fenced{.session = 7});
  EXPECT_EQ(stops_, 0);
  board_.AddEnded({.path = "/a", .owner = kOwner});
  for (int i = 0; i < 400 && !agent_->Done(); ++i) (void)agent_->DoWork();
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainWaitsForTheLanesThatTheLearnerPlaysItself) {
  BeginSession();
  GiveList(1, {});
  lanes_done_ = false;
  drain_ = true;
  for (int i = 0; i < 3; ++i) EXPECT_NE(Expect<wire::Heartbeat>().phase, "");
  EXPECT_EQ(stops_, 0);
  lanes_done_ = true;
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainTrainsTheWholeBatchesThatWaitUntilItIsLate) {
  BeginSession();
  GiveList(1, {});
  batch_waits_ = true;
  drain_ = true;
  for (int i = 0; i < 3; ++i) EXPECT_NE(Expect<wire::Heartbeat>().phase, "");
  EXPECT_EQ(stops_, 0);
  clock_.AdvanceMs(10'000);
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainOfALearnerThatHasFailedWaitsForNothing) {
  BeginSession();
  GiveList(1, {"/a"});
  lanes_done_ = false;
  failed_ = true;
  drain_ = true;
  const std::int64_t start_ns = clock_.NowNs();
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(stops_, 1);
  EXPECT_LT(clock_.NowNs() - start_ns, 5 * kNanosPerSecond) << "half the drain time-out";
}

TEST_F(LearnerLinkTest, DrainWithoutAListOfThisSessionWaitsForOne) {
  BeginSession();
  drain_ = true;
  for (int i = 0; i < 5; ++i) Expect<wire::Heartbeat>();
  EXPECT_EQ(stops_, 0);
  GiveList(1, {});
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainAskedForByTheCoordinatorIsADrainToo) {
  BeginSession();
  GiveList(1, {});
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .drain = true});
  Expect<wire::Goodbye>();
  EXPECT_EQ(stops_, 1);
}

TEST_F(LearnerLinkTest, DrainEndsAfterItsTimeOutAlthoughARingIsOpenAndNobodyAnswers) {
  BeginSession();
  GiveList(1, {"/a"});
  drain_ = true;
  (void)agent_->DoWork();
  clock_.AdvanceMs(9'000);
  (void)agent_->DoWork();
  EXPECT_EQ(stops_, 0);
  clock_.AdvanceMs(2'000);
  (void)agent_->DoWork();
  EXPECT_EQ(stops_, 1);
  EXPECT_FALSE(agent_->Done());
  clock_.AdvanceMs(4'000);
  (void)agent_->DoWork();
  EXPECT_TRUE(agent_->Done());
}

TEST_F(LearnerLinkTest, DrainBeforeTheAnswerToTheRegistrationSaysGoodbyeAndBuildsNothing) {
  Expect<wire::Register>();
  drain_ = true;
  (void)agent_->DoWork();
  Answer(Welcome(7, 1));
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(builds_, 0);
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(agent_->Done());
}

TEST_F(LearnerLinkTest, DrainBeforeAnySessionIsDoneAtOnce) {
  drain_ = true;
  (void)agent_->DoWork();
  EXPECT_TRUE(agent_->Done());
  EXPECT_EQ(stops_, 0);
}

}  // namespace
}  // namespace tetrion::learner
