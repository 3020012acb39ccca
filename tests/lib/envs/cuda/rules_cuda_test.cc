#include "lib/envs/cuda/rules_cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

// Skips, with a message, where no device is.
class RulesCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device: the two builds were not compared";
  }
};

void ExpectSameTrajectories(const TraceRun& run) {
  std::vector<LaneTrace> device(static_cast<std::size_t>(run.lanes));
  PlayLanesOnDevice(run, device);
  std::uint32_t episodes = 0;
  for (int lane = 0; lane < run.lanes; ++lane) {
    const LaneTrace host = PlayLane(run, lane);
    const LaneTrace& theirs = device[static_cast<std::size_t>(lane)];
    ASSERT_EQ(theirs.digest, host.digest) << lane;
    ASSERT_EQ(theirs.episodes, host.episodes) << lane;
    ASSERT_EQ(theirs.lines, host.lines) << lane;
    ASSERT_EQ(std::memcmp(&theirs.last, &host.last, sizeof(TetrisRecord)), 0) << lane;
    episodes += host.episodes;
  }
  EXPECT_GT(episodes, 0U);
}

TEST_F(RulesCudaTest, TetrisTrajectoriesEqualTheCpus) {
  for (const int queue_size : {1, 4, 7}) {
    ExpectSameTrajectories({.seed = 3, .lanes = 257, .steps = 2000, .queue_size = queue_size});
  }
  ExpectSameTrajectories({.seed = 4, .lanes = 64, .steps = 2000, .iid_pieces = true});
}

TEST_F(RulesCudaTest, PlacementTrajectoriesEqualTheCpus) {
  ExpectSameTrajectories({.seed = 5, .lanes = 257, .steps = 1000, .placement = true});
}

TEST_F(RulesCudaTest, CartPoleStepsAgreeWithinTheLastBits) {
  testing::Draws draws(1);
  std::vector<CartPoleState> host(3000);
  std::vector<std::int32_t> actions(host.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    host[i] = CartPoleReset(9, i);
    host[i].theta *= 4;
    host[i].theta_dot *= 40;
    actions[i] = draws.Below(2);
  }
  std::vector<CartPoleState> device = host;
  std::vector<std::uint8_t> terminated(host.size());
  StepCartPolesOnDevice(device, actions, terminated);
  for (std::size_t i = 0; i < host.size(); ++i) {
    const bool fell = CartPoleStep(host[i], actions[i]);
    ASSERT_EQ(terminated[i] != 0, fell) << i;
    ASSERT_NEAR(device[i].x, host[i].x, 1e-15);
    ASSERT_NEAR(device[i].x_dot, host[i].x_dot, 1e-14);
    ASSERT_NEAR(device[i].theta, host[i].theta, 1e-15);
    ASSERT_NEAR(device[i].theta_dot, host[i].theta_dot, 1e-14);
  }
}

}  // namespace
}  // namespace tetrion
