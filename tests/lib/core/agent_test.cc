#include "lib/core/agent.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lib/core/error.h"

namespace tetrion {
namespace {

struct CountingAgent final : Agent {
  std::string name() const override { return "counting"; }
  void OnStart() override { started = true; }
  int DoWork() override {
    if (++cycles == fail_at) throw Error(ExitCode::kTryAgain, "worn out");
    return 1;
  }
  void OnClose() override { closed = true; }

  std::atomic<int> cycles{0};
  int fail_at = -1;
  std::atomic<bool> started{false}, closed{false};
};

TEST(AgentTest, RunsUntilStoppedAndClosesOnce) {
  CountingAgent agent;
  AgentRunner runner(agent, [](std::exception_ptr) { FAIL() << "no error was thrown"; });
  runner.Start();
  while (agent.cycles < 10) std::this_thread::yield();
  EXPECT_TRUE(agent.started);
  runner.RequestStop();
  runner.RequestStop();
  runner.Join();
  EXPECT_TRUE(agent.closed);
  EXPECT_FALSE(runner.Running());
}

TEST(AgentTest, HandsAnExceptionToItsOwnerAndStillCloses) {
  CountingAgent agent;
  agent.fail_at = 3;
  std::atomic<int> code{0};
  AgentRunner runner(agent, [&code](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      code = static_cast<int>(e.code());
    }
  });
  runner.Start();
  runner.Join();
  EXPECT_EQ(code, 75);
  EXPECT_EQ(agent.cycles, 3);
  EXPECT_TRUE(agent.closed);
}

}  // namespace
}  // namespace tetrion
