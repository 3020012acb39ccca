#include "lib/core/agent.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

struct CountingAgent final : Agent {
  std::string name() const override { return "counting"; }
  int DoWork() override {
    if (++cycles == fail_at) throw Error(ExitCode::kTryAgain, "worn out");
    return 1;
  }
  void OnClose() override {
    closed = true;
    if (fail_to_close) throw Error(ExitCode::kInternal, "cannot close");
  }

  std::atomic<int> cycles{0};
  int fail_at = -1;
  bool fail_to_close = false;
  std::atomic<bool> closed{false};
};

TEST(AgentTest, RunsUntilStoppedAndClosesOnce) {
  CountingAgent agent;
  AgentRunner runner(agent, [](std::exception_ptr) { FAIL() << "no error was thrown"; });
  runner.Start();
  while (agent.cycles < 10) std::this_thread::yield();
  EXPECT_EQ(runner.agent_name(), "counting");
  runner.RequestStop();
  runner.RequestStop();
  runner.Join();
  EXPECT_TRUE(agent.closed);
  EXPECT_FALSE(runner.Running());
}

// What on_error was given.
struct Failures {
  std::function<void(std::exception_ptr)> Hook() {
    return [this](std::exception_ptr error) {
      try {
        std::rethrow_exception(error);
      } catch (const Error& e) {
        codes.push_back(static_cast<int>(e.code()));
      }
    };
  }
  std::vector<int> codes;  // read after Join
};

TEST(AgentTest, HandsAnExceptionToItsOwnerAndStillCloses) {
  CountingAgent agent;
  agent.fail_at = 3;
  Failures failures;
  AgentRunner runner(agent, failures.Hook());
  runner.Start();
  runner.Join();
  EXPECT_EQ(failures.codes, std::vector<int>{75});
  EXPECT_EQ(agent.cycles, 3);
  EXPECT_TRUE(agent.closed);
}

TEST(AgentTest, FailureToCloseIsHandedOverToo) {
  CountingAgent agent;
  agent.fail_to_close = true;
  Failures failures;
  AgentRunner runner(agent, failures.Hook());
  runner.Start();
  runner.RequestStop();
  runner.Join();
  EXPECT_EQ(failures.codes, std::vector<int>{1});
  EXPECT_FALSE(runner.Running());
}

TEST(AgentTest, FirstOfTwoFailuresIsKept) {
  CountingAgent agent;
  agent.fail_at = 1;
  agent.fail_to_close = true;
  Failures failures;
  AgentRunner runner(agent, failures.Hook());
  runner.Start();
  runner.Join();
  EXPECT_EQ(failures.codes, std::vector<int>{75});
}

// Hangs in its second cycle until it is let go.
struct HangingAgent final : Agent {
  std::string name() const override { return "hanging"; }
  int DoWork() override {
    if (++cycles == 2) {
      hangs = true;
      while (!let_go) std::this_thread::yield();
    }
    return 1;
  }
  std::atomic<int> cycles{0};
  std::atomic<bool> hangs{false}, let_go{false};
};

TEST(AgentTest, CycleAgeGrowsWhileACycleHangsAndFallsAfterwards) {
  HangingAgent agent;
  AgentRunner runner(agent, [](std::exception_ptr) { FAIL() << "no error was thrown"; });
  EXPECT_EQ(runner.CycleAgeNs(), 0);
  runner.Start();
  while (!agent.hangs) std::this_thread::yield();
  const std::int64_t age_ns = runner.CycleAgeNs();
  while (runner.CycleAgeNs() <= age_ns + kNanosPerMilli) std::this_thread::yield();
  EXPECT_GT(runner.MaxCycleNs(), age_ns) << "the cycle that hangs counts";
  agent.let_go = true;
  while (runner.CycleAgeNs() > age_ns + kNanosPerMilli) std::this_thread::yield();
  EXPECT_GE(runner.MaxCycleNs(), age_ns);
  runner.RequestStop();
  runner.Join();
  EXPECT_EQ(runner.CycleAgeNs(), 0);
}

}  // namespace
}  // namespace tetrion
