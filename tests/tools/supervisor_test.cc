#include "tools/up/supervisor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using Role = ChildSpec::Role;
using State = Supervisor::State;

constexpr std::int64_t kDrainNs = 30 * kNanosPerSecond;

// Processes that do what the test says.
class FakeHost final : public ProcessHost {
 public:
  pid_t Start(const std::string& name, const std::vector<std::string>& command) override {
    if (name == refused) throw Error(refusal, "cannot start " + name);
    starts.push_back(name + ":" + command.back());
    alive[++last_pid] = name;
    return last_pid;
  }
  std::optional<ChildExit> Poll(pid_t pid) override {
    const auto end = ends.find(pid);
    if (end == ends.end()) return std::nullopt;
    const ChildExit exit = end->second;
    ends.erase(end);
    alive.erase(pid);
    return exit;
  }
  void Signal(pid_t pid, int signal) override {
    signals.push_back(alive.at(pid) + ":" + std::to_string(signal));
    if (signal == SIGKILL) ends[pid] = {true, SIGKILL};
  }
  // Ends the living process of that name.
  void End(const std::string& name, ChildExit exit) {
    for (const auto& [pid, one] : alive) {
      if (one == name) ends[pid] = exit;
    }
  }
  void EndAll(ChildExit exit) {
    for (const auto& [pid, one] : alive) ends[pid] = exit;
  }
  int Starts(const std::string& start) const {
    return static_cast<int>(std::count(starts.begin(), starts.end(), start));
  }

  pid_t last_pid = 100;
  std::map<pid_t, std::string> alive;
  std::map<pid_t, ChildExit> ends;
  std::vector<std::string> starts, signals;
  std::string refused;  // the name that cannot be started
  ExitCode refusal = ExitCode::kTryAgain;
};

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

TEST(JudgeTest, ExitCodesDecideAboutRestarts) {
  const std::map<int, ExitVerdict> table = {
      {0, ExitVerdict::kDone},      {1, ExitVerdict::kRestart},  {2, ExitVerdict::kFatal},
      {75, ExitVerdict::kRestart},  {78, ExitVerdict::kFatal},   {127, ExitVerdict::kRestart},
      {143, ExitVerdict::kRestart}, {255, ExitVerdict::kRestart}};
  for (const auto& [code, verdict] : table) EXPECT_EQ(Judge({false, code}), verdict) << code;
  for (const int signal : {SIGHUP, SIGINT, SIGKILL, SIGSEGV, SIGTERM}) {
    EXPECT_EQ(Judge({true, signal}), ExitVerdict::kRestart) << signal;
  }
}

TEST(RestartPolicyTest, DelaysDoubleUpToTheBoundAndEnd) {
  FakeClock clock;
  RestartPolicy policy(clock);
  std::vector<std::int64_t> delays_ms;
  while (const auto delay_ns = policy.OnDeath()) delays_ms.push_back(*delay_ns / kNanosPerMilli);
  EXPECT_THAT(delays_ms, ElementsAre(250, 500, 1000, 2000, 4000));
  EXPECT_EQ(policy.OnDeath(), std::nullopt);
}

TEST(RestartPolicyTest, HealthyLifeForgivesEarlierDeaths) {
  FakeClock clock;
  RestartPolicy policy(clock);
  for (int life = 0; life < 20; ++life) {
    policy.OnStarted();
    clock.AdvanceMs(RestartPolicy::kHealthyMs);
    EXPECT_EQ(policy.OnDeath(), RestartPolicy::kFirstDelayMs * kNanosPerMilli);
  }
  policy.OnStarted();
  clock.AdvanceMs(RestartPolicy::kHealthyMs - 1);
  EXPECT_EQ(policy.OnDeath(), 2 * RestartPolicy::kFirstDelayMs * kNanosPerMilli);
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
