#include "tools/up/supervisor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tests/tools/fake_host.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using Role = ChildSpec::Role;
using State = Supervisor::State;

constexpr std::int64_t kDrainNs = 30 * kNanosPerSecond;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest()
      : supervisor_({{"coordinator", Role::kCoordinator, {"new"}, {"again"}},
                     {"learner", Role::kLearner, {"new"}, {"again"}},
                     {"actor-0", Role::kActor, {"new"}, {}},
                     {"actor-1", Role::kActor, {"new"}, {}}},
                    kDrainNs, host_, clock_) {
    supervisor_.StartAll();
  }
  // Ticks until every planned restart is due.
  void LetTimePass() {
    supervisor_.Tick();
    clock_.AdvanceMs(RestartPolicy::kMaxDelayMs);
    supervisor_.Tick();
  }

  // Until its restarts are used up.
  void Wear(const std::vector<std::string>& names) {
    for (int death = 0; death <= RestartPolicy::kTries; ++death) {
      ASSERT_EQ(supervisor_.state(), State::kRunning) << death;
      for (const std::string& name : names) host_.End(name, {false, 1});
      LetTimePass();
    }
  }
  // While the run drains, it ends with 75 and all others with 0.
  void DrainAndExpectFailureOf(const std::string& name) {
    supervisor_.Drain("test");
    host_.EndAll({false, 0});
    host_.End(name, {false, 75});
    EXPECT_EQ(supervisor_.Tick(), State::kEnded);
    EXPECT_EQ(supervisor_.exit_code(), 75);
    EXPECT_EQ(supervisor_.failed_child(), name);
  }
  // One more start of an actor that is left out.
  void LetThePausePass() {
    clock_.AdvanceMs(Supervisor::kLeftOutPauseMs);
    supervisor_.Tick();
  }

  FakeClock clock_;
  FakeHost host_;
  Supervisor supervisor_;
};

TEST_F(SupervisorTest, DeathsOfTheCoordinatorAddNoTimeToStopAfter) {
  Supervisor timed({{"coordinator", Role::kCoordinator, {"10s"}, {"again"}, 10}}, kDrainNs, host_,
                   clock_);
  timed.StartAll();
  EXPECT_EQ(host_.starts.back(), "coordinator:10s");
  for (const char* left : {"7.500000s", "0.001000s"}) {
    host_.End("coordinator", {true, SIGKILL});
    timed.Tick();
    clock_.AdvanceMs(host_.starts.back() == "coordinator:10s" ? 2500 : 60'000);
    timed.Tick();
    EXPECT_EQ(host_.starts.back(), std::string("coordinator:") + left);
  }
}

TEST_F(SupervisorTest, StartsInOrder) {
  EXPECT_THAT(host_.starts,
              ElementsAre("coordinator:new", "learner:new", "actor-0:new", "actor-1:new"));
  EXPECT_EQ(supervisor_.Tick(), State::kRunning);
  EXPECT_EQ(supervisor_.ActorsUp(), 2);
}

TEST_F(SupervisorTest, DeadServiceComesBackAfterItsDelayWithItsRestartCommand) {
  host_.End("learner", {true, SIGKILL});
  supervisor_.Tick();
  EXPECT_EQ(supervisor_.PidOf("learner"), 0);
  clock_.AdvanceMs(RestartPolicy::kFirstDelayMs - 1);
  supervisor_.Tick();
  EXPECT_EQ(host_.Starts("learner:again"), 0);
  clock_.AdvanceMs(1);
  supervisor_.Tick();
  EXPECT_EQ(host_.Starts("learner:again"), 1);
  EXPECT_NE(supervisor_.PidOf("learner"), 0);
  EXPECT_EQ(supervisor_.restarts(), 1);
  host_.End("actor-1", {false, 75});
  LetTimePass();
  EXPECT_EQ(host_.Starts("actor-1:new"), 2);
}

TEST_F(SupervisorTest, SixthDeathInARowOfTheLearnerDrainsTheRestAndEndsWith75) {
  Wear({"learner"});
  EXPECT_EQ(supervisor_.state(), State::kDraining);
  EXPECT_THAT(host_.signals, ElementsAre("coordinator:15", "actor-0:15", "actor-1:15"));
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 75);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

TEST_F(SupervisorTest, ActorThatKeepsDyingIsLeftOutAndTriedAgainAfterALongPause) {
  Wear({"actor-0"});
  EXPECT_EQ(supervisor_.state(), State::kRunning);
  EXPECT_TRUE(host_.signals.empty());
  EXPECT_EQ(supervisor_.ActorsUp(), 1);
  const int starts = host_.Starts("actor-0:new");
  EXPECT_EQ(starts, 1 + RestartPolicy::kTries);
  LetThePausePass();
  EXPECT_EQ(host_.Starts("actor-0:new"), starts + 1);
  host_.End("actor-0", {true, SIGSEGV});
  LetTimePass();
  EXPECT_EQ(host_.Starts("actor-0:new"), starts + 1) << "one start a pause";
  LetThePausePass();
  EXPECT_EQ(host_.Starts("actor-0:new"), starts + 2);
  clock_.AdvanceMs(RestartPolicy::kHealthyMs);  // it works at last: a death is one of five again
  host_.End("actor-0", {true, SIGKILL});
  LetTimePass();
  EXPECT_EQ(host_.Starts("actor-0:new"), starts + 3);
  EXPECT_EQ(supervisor_.state(), State::kRunning);
}

TEST_F(SupervisorTest, RunWhoseActorsAllKeepDyingFromTheStartFails) {
  Wear({"actor-0", "actor-1"});
  EXPECT_EQ(supervisor_.state(), State::kDraining);
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 75);
  EXPECT_EQ(supervisor_.failed_child(), "actor-1");
}

TEST_F(SupervisorTest, RunGoesOnWhileAnActorHasLeftOrWaitsForAnOrdinaryRestart) {
  host_.End("actor-1", {false, 0});
  Wear({"actor-0"});
  EXPECT_EQ(supervisor_.state(), State::kRunning) << "actor-1 has worked and left";
}

TEST_F(SupervisorTest, LastDeathOfAnActorWhileTheOtherIsAboutToStartIsNotTheRuns) {
  for (int death = 0; death < RestartPolicy::kTries; ++death) {
    host_.End("actor-0", {false, 1});
    LetTimePass();
  }
  host_.End("actor-1", {false, 1});
  supervisor_.Tick();
  host_.End("actor-0", {false, 1});
  supervisor_.Tick();
  EXPECT_EQ(supervisor_.state(), State::kRunning);
  LetTimePass();
  EXPECT_EQ(supervisor_.ActorsUp(), 1);
}

TEST_F(SupervisorTest, RunWhoseActorsWorkedOnceWaitsForThem) {
  clock_.AdvanceMs(RestartPolicy::kHealthyMs);
  Wear({"actor-0", "actor-1"});
  EXPECT_EQ(supervisor_.state(), State::kRunning);
  EXPECT_EQ(supervisor_.ActorsUp(), 0);
  LetThePausePass();
  EXPECT_EQ(supervisor_.ActorsUp(), 2);
}

TEST_F(SupervisorTest, ActorThatIsLeftOutStillEndsTheRunWithAUsageError) {
  Wear({"actor-0"});
  LetThePausePass();
  host_.End("actor-0", {false, 2});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(supervisor_.exit_code(), 2);
}

TEST_F(SupervisorTest, RestartThatCannotBeMadeIsADeathLikeOthers) {
  host_.End("learner", {true, SIGKILL});
  supervisor_.Tick();
  host_.refused = "learner";
  LetTimePass();
  EXPECT_EQ(supervisor_.state(), State::kRunning);
  host_.refused = "";
  LetTimePass();
  EXPECT_EQ(host_.Starts("learner:again"), 1);
  EXPECT_EQ(supervisor_.restarts(), 2);
  host_.End("learner", {true, SIGKILL});
  host_.refused = "learner";
  for (int i = 0; i < RestartPolicy::kTries; ++i) LetTimePass();
  EXPECT_EQ(supervisor_.state(), State::kDraining);
}

// A run of long standing: the refused start must not count as a healthy life.
TEST_F(SupervisorTest, StartsThatFailForGoodEndTheRunAlsoLongAfterItsBeginning) {
  clock_.AdvanceMs(10 * RestartPolicy::kHealthyMs);
  host_.End("learner", {true, SIGKILL});
  host_.refused = "learner";
  for (int i = 0; i <= RestartPolicy::kTries; ++i) LetTimePass();
  EXPECT_EQ(supervisor_.state(), State::kDraining);
  EXPECT_EQ(supervisor_.exit_code(), 75);
}

TEST(SupervisorStartTest, FirstStartThatFailsIsRetriedAsAFirstStart) {
  FakeClock clock;
  FakeHost host;
  Supervisor supervisor({{"coordinator", Role::kCoordinator, {"new"}, {"again"}}}, kDrainNs, host,
                        clock);
  host.refused = "coordinator";
  supervisor.StartAll();
  EXPECT_EQ(supervisor.Tick(), State::kRunning);
  host.refused = "";
  clock.AdvanceMs(RestartPolicy::kMaxDelayMs);
  supervisor.Tick();
  EXPECT_THAT(host.starts, ElementsAre("coordinator:new"));
}

TEST(SupervisorStartTest, StartThatIsAUsageErrorStartsNoOther) {
  FakeClock clock;
  FakeHost host;
  Supervisor supervisor(
      {{"learner", Role::kLearner, {"new"}, {}}, {"actor-0", Role::kActor, {"new"}, {}}}, kDrainNs,
      host, clock);
  host.refused = "learner";
  host.refusal = ExitCode::kUsage;
  supervisor.StartAll();
  EXPECT_EQ(supervisor.Tick(), State::kEnded);
  EXPECT_EQ(supervisor.exit_code(), 2);
  EXPECT_TRUE(host.starts.empty());
}

TEST_F(SupervisorTest, FatalExitIsNotRetriedAndItsCodeIsOurs) {
  for (const int code : {2, 78}) {
    FakeHost host;
    Supervisor supervisor({{"coordinator", Role::kCoordinator, {"new"}, {}},
                           {"learner", Role::kLearner, {"new"}, {}}},
                          kDrainNs, host, clock_);
    supervisor.StartAll();
    host.End("learner", {false, code});
    EXPECT_EQ(supervisor.Tick(), State::kDraining);
    clock_.AdvanceMs(RestartPolicy::kMaxDelayMs);
    host.End("coordinator", {false, 0});
    EXPECT_EQ(supervisor.Tick(), State::kEnded);
    EXPECT_EQ(supervisor.exit_code(), code);
    EXPECT_EQ(supervisor.failed_child(), "learner");
    EXPECT_EQ(host.Starts("learner:new"), 1);
  }
}

TEST_F(SupervisorTest, ActorThatDrainsHasLeftAndTheRunGoesOn) {
  host_.End("actor-0", {false, 0});
  LetTimePass();
  EXPECT_EQ(supervisor_.state(), State::kRunning);
  EXPECT_EQ(supervisor_.ActorsUp(), 1);
  EXPECT_EQ(host_.Starts("actor-0:new"), 1);
  EXPECT_TRUE(host_.signals.empty());
}

TEST_F(SupervisorTest, EndOfTheCoordinatorEndsTheRunWithSuccess) {
  host_.End("coordinator", {false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 0);
  EXPECT_EQ(supervisor_.failed_child(), "");
}

TEST_F(SupervisorTest, RunWhoseLearnerDiedAndNeverWorkedIsNoSuccess) {
  host_.End("learner", {false, 1});
  supervisor_.Tick();
  host_.End("coordinator", {false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 1);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

TEST_F(SupervisorTest, RunWhoseLearnerWorkedOrIsBackEndsWithSuccess) {
  host_.End("learner", {false, 75});
  LetTimePass();  // back
  host_.End("coordinator", {false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(supervisor_.failed_child(), "");
  FakeHost host;
  Supervisor worked(
      {{"coordinator", Role::kCoordinator, {"new"}, {}}, {"learner", Role::kLearner, {"new"}, {}}},
      kDrainNs, host, clock_);
  worked.StartAll();
  clock_.AdvanceMs(RestartPolicy::kHealthyMs);
  host.End("learner", {false, 75});
  worked.Tick();
  host.End("coordinator", {false, 0});
  EXPECT_EQ(worked.Tick(), State::kEnded);
  EXPECT_EQ(worked.exit_code(), 0);
}

// Killed as the run ended: its successor is turned away.
TEST_F(SupervisorTest, RunWhoseLearnerWasKilledAtItsEndEndsWithSuccess) {
  host_.End("learner", {true, SIGKILL});
  LetTimePass();
  host_.End("learner", {false, 75});
  supervisor_.Tick();
  host_.End("coordinator", {false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(supervisor_.failed_child(), "");
}

TEST_F(SupervisorTest, WarningOfADeathHasTheLastLineOfTheDead) {
  const auto before = log::default_logger();
  testing::internal::CaptureStderr();
  SetUpLogging({.service = "test"});  // now: it opens the stream anew
  host_.End("learner", {false, 75});
  supervisor_.Tick();
  host_.End("actor-0", {true, SIGKILL});  // had no time to say why
  supervisor_.Tick();
  const std::string said = testing::internal::GetCapturedStderr();
  log::set_default_logger(before);
  EXPECT_THAT(said, testing::HasSubstr("learner: died (exit code 75: last of learner); restart 1"));
  EXPECT_THAT(said, testing::HasSubstr("actor-0: died (signal Killed); restart 1"));
}

TEST_F(SupervisorTest, DrainAsksOnceAndStartsNothingAnyMore) {
  host_.End("learner", {true, SIGSEGV});
  supervisor_.Tick();  // a restart is planned
  supervisor_.Drain("test");
  supervisor_.Drain("test");
  EXPECT_THAT(host_.signals, ElementsAre("coordinator:15", "actor-0:15", "actor-1:15"));
  LetTimePass();
  EXPECT_EQ(host_.Starts("learner:again"), 0);
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 0);
}

TEST_F(SupervisorTest, WhoIgnoresTheDrainIsKilledAfterTheTimeOut) {
  supervisor_.Drain("test");
  for (const char* name : {"coordinator", "learner", "actor-0"}) host_.End(name, {false, 0});
  clock_.AdvanceNs(kDrainNs - 1);
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  clock_.AdvanceNs(1);
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(host_.signals.back(), "actor-1:9");
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 75);
}

// One with much memory takes longer to die than a tick.
TEST_F(SupervisorTest, ChildThatIsKilledIsKilledAndNamedOnce) {
  supervisor_.Drain("test");
  for (const char* name : {"coordinator", "learner", "actor-0"}) host_.End(name, {false, 0});
  clock_.AdvanceNs(kDrainNs);
  host_.dies_late = true;
  for (int tick = 0; tick < 3; ++tick) supervisor_.Tick();
  EXPECT_EQ(std::ranges::count(host_.signals, "actor-1:9"), 1);
  host_.EndAll({true, SIGKILL});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
}

TEST_F(SupervisorTest, MembersThatDoNotEndAreKilledBeforeTheCoordinatorThatWaitsForThem) {
  supervisor_.Drain("test");
  for (const char* name : {"actor-0", "actor-1"}) host_.End(name, {false, 0});
  clock_.AdvanceNs(kDrainNs);
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(host_.signals.back(), "learner:9");
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(host_.signals.back(), "coordinator:9");
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

// Its training is lost, however long it had worked.
TEST_F(SupervisorTest, LearnerThatCannotStoreItsLastCheckpointIsTheRunsFailure) {
  for (const bool draining : {true, false}) {
    FakeHost host;
    Supervisor supervisor({{"coordinator", Role::kCoordinator, {"new"}, {"again"}},
                           {"learner", Role::kLearner, {"new"}, {"again"}}},
                          kDrainNs, host, clock_);
    supervisor.StartAll();
    host.End("learner", {true, SIGKILL});
    supervisor.Tick();
    clock_.AdvanceMs(RestartPolicy::kHealthyMs);
    supervisor.Tick();
    if (draining) supervisor.Drain("test");
    host.End("learner", {false, 74});
    EXPECT_EQ(supervisor.Tick(), State::kDraining);
    host.End("coordinator", {false, 0});
    EXPECT_EQ(supervisor.Tick(), State::kEnded);
    EXPECT_EQ(supervisor.exit_code(), 74);
    EXPECT_EQ(supervisor.failed_child(), "learner");
    EXPECT_EQ(host.Starts("learner:again"), 1) << "a restart would be turned away";
  }
}

TEST_F(SupervisorTest, RunInWhichNothingWasDoneFailsIfAChildHasDied) {
  host_.End("actor-0", {false, 1});
  LetTimePass();
  supervisor_.Drain("test");
  host_.EndAll({false, 0});
  ASSERT_EQ(supervisor_.Tick(), State::kEnded);
  ASSERT_EQ(supervisor_.exit_code(), 0);
  supervisor_.FailIfDied(Role::kLearner);
  EXPECT_EQ(supervisor_.exit_code(), 0);
  supervisor_.FailIfDied(std::nullopt);
  EXPECT_EQ(supervisor_.exit_code(), 75);
  EXPECT_EQ(supervisor_.failed_child(), "actor-0");
}

// Unlike a kill, which tells nothing of the learner.
TEST_F(SupervisorTest, LearnerThatCrashedAndIsDownAsTheRunEndsIsItsFailure) {
  host_.End("learner", {true, SIGSEGV});
  supervisor_.Tick();
  host_.End("coordinator", {false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kDraining);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
  EXPECT_EQ(supervisor_.exit_code(), 75) << "no number of a signal";
}

TEST_F(SupervisorTest, ChildAskedBeforeItWatchesForSignalsHasDrained) {
  supervisor_.Drain("test");
  host_.EndAll({true, SIGTERM});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 0);
}

TEST_F(SupervisorTest, ActorThatComesAsTheRunEndsIsNoFailure) {
  supervisor_.Drain("test");
  host_.End("actor-0", {false, 75});
  supervisor_.Tick();
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 0);
  EXPECT_EQ(supervisor_.failed_child(), "");
}

TEST_F(SupervisorTest, LearnerThatLosesTheRunWhileDrainingShowsInTheExitCode) {
  supervisor_.Drain("test");
  host_.End("learner", {false, 75});
  supervisor_.Tick();
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 75);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

// It replaces one that was killed or had worked, and comes too late to work itself.
TEST_F(SupervisorTest, LearnersReplacementThatComesAsTheRunEndsIsNoFailure) {
  for (const bool was_killed : {true, false}) {
    FakeHost host;
    Supervisor supervisor({{"coordinator", Role::kCoordinator, {"new"}, {"again"}},
                           {"learner", Role::kLearner, {"new"}, {"again"}}},
                          kDrainNs, host, clock_);
    supervisor.StartAll();
    clock_.AdvanceMs(was_killed ? 1 : RestartPolicy::kHealthyMs);
    host.End("learner", was_killed ? ChildExit{true, SIGKILL} : ChildExit{false, 75});
    supervisor.Tick();
    clock_.AdvanceMs(RestartPolicy::kFirstDelayMs);
    supervisor.Tick();
    ASSERT_NE(supervisor.PidOf("learner"), 0);
    host.End("coordinator", {false, 0});
    supervisor.Tick();
    ASSERT_EQ(supervisor.state(), State::kDraining);
    host.End("learner", {false, 75});
    EXPECT_EQ(supervisor.Tick(), State::kEnded);
    EXPECT_EQ(supervisor.exit_code(), 0);
    EXPECT_EQ(supervisor.failed_child(), "");
  }
}

TEST_F(SupervisorTest, CoordinatorsReplacementThatEndsWith75WhileDrainingIsAFailure) {
  host_.End("coordinator", {true, SIGKILL});
  LetTimePass();
  DrainAndExpectFailureOf("coordinator");
}

TEST_F(SupervisorTest, LearnersReplacementThatHasWorkedAndThenLosesTheRunIsAFailure) {
  host_.End("learner", {true, SIGKILL});
  LetTimePass();
  clock_.AdvanceMs(RestartPolicy::kHealthyMs);
  DrainAndExpectFailureOf("learner");
}

// The run ended before the learner had read what it was given.
TEST_F(SupervisorTest, RefusedSettingWhileDrainingIsTheExitCode) {
  supervisor_.Drain("test");
  host_.End("coordinator", {false, 75});  // first, and less to the point
  supervisor_.Tick();
  host_.End("learner", {false, 78});
  supervisor_.Tick();
  host_.EndAll({false, 0});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 78);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

TEST_F(SupervisorTest, DeathWhileDrainingShowsInTheExitCode) {
  supervisor_.Drain("test");
  host_.End("learner", {true, SIGSEGV});
  supervisor_.Tick();
  host_.EndAll({true, SIGSEGV});
  EXPECT_EQ(supervisor_.Tick(), State::kEnded);
  EXPECT_EQ(supervisor_.exit_code(), 75);
  EXPECT_EQ(supervisor_.failed_child(), "learner");
}

}  // namespace
}  // namespace tetrion
