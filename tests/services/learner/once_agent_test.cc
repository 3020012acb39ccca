#include "services/learner/once_agent.h"

#include <gtest/gtest.h>

#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion::learner {
namespace {

TEST(OnceAgentTest, WorkIsDoneOnceOnAnotherThreadAndItsResultIsSeen) {
  std::atomic<bool> go{false};
  int built = 0;
  std::thread::id builder;
  OnceAgent agent("build", [&] {
    while (!go.load()) std::this_thread::yield();
    ++built;
    builder = std::this_thread::get_id();
  });
  AgentRunner runner(agent, [](std::exception_ptr) { ADD_FAILURE(); }, kNanosPerMilli);
  EXPECT_FALSE(agent.Finished());
  runner.Start();
  EXPECT_FALSE(agent.Finished());  // never blocks
  go = true;
  const Deadline deadline = Deadline::AfterMs(20'000);
  while (!agent.Finished() && !deadline.Passed()) std::this_thread::yield();
  ASSERT_TRUE(agent.Finished());
  runner.RequestStop();
  runner.Join();
  EXPECT_EQ(built, 1);
  EXPECT_NE(builder, std::this_thread::get_id());
}

// A last checkpoint that no thread has begun is then its owner's to write.
TEST(OnceAgentTest, OneThatIsStoppedBeforeItsFirstCycleHasDoneNothing) {
  OnceAgent agent("stop", [] { ADD_FAILURE(); });
  AgentRunner runner(agent, [](std::exception_ptr) { ADD_FAILURE(); }, kNanosPerMilli);
  runner.RequestStop();
  runner.Start();
  runner.Join();
  EXPECT_FALSE(agent.Finished());
}

TEST(OnceAgentTest, WhatTheWorkThrowsComesOutOfFinished) {
  OnceAgent agent("build", [] { throw Error(ExitCode::kConfig, "no such network"); });
  (void)agent.DoWork();
  try {
    (void)agent.Finished();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_STREQ(error.what(), "no such network");
  }
}

}  // namespace
}  // namespace tetrion::learner
