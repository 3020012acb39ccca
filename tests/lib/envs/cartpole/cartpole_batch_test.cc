#include "lib/envs/cartpole/cartpole_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace tetrion {
namespace {

constexpr double kMostTheta = 12 * 2 * 3.141592653589793 / 360;

// Plays `lanes` of `states` in a batch and one by one.
void ExpectTheSameBits(const std::vector<int>& lanes, std::vector<CartPoleState> states,
                       const std::vector<std::int32_t>& actions) {
  std::vector<CartPoleState> expected = states;
  std::array<bool, kCartPoleBatch> over;
  CartPoleStepBatch(lanes, actions.data(), states.data(), over.data());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto lane = static_cast<std::size_t>(lanes[i]);
    const CartPoleState before = expected[lane];
    ASSERT_EQ(over[i], CartPoleStep(expected[lane], actions[lane])) << before.theta;
  }
  for (std::size_t lane = 0; lane < states.size(); ++lane) {
    ASSERT_EQ(std::memcmp(&states[lane], &expected[lane], sizeof(CartPoleState)), 0)
        << "lane " << lane << " of " << lanes.size();
  }
}

TEST(CartPoleBatchTest, MillionsOfAnglesGiveTheBitsOfOneCartAtATime) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<int> lanes(kCartPoleBatch);
  std::iota(lanes.begin(), lanes.end(), 0);
  std::vector<CartPoleState> states(kCartPoleBatch);
  std::vector<std::int32_t> actions(kCartPoleBatch);
  for (int batch = 0; batch < 32768; ++batch) {
    for (std::size_t i = 0; i < kCartPoleBatch; ++i) {
      // Angles of every size that play leads to, from 1e-10 on.
      const double theta = std::ldexp(kMostTheta * unit(random), -(batch % 32));
      states[i] = {2.4 * unit(random), 3 * unit(random), theta, 3 * unit(random)};
      actions[i] = static_cast<std::int32_t>(random() % 2);
    }
    ExpectTheSameBits(lanes, states, actions);
  }
}

TEST(CartPoleBatchTest, AnyNumberOfLanesInAnyOrderArePlayedAndNoOther) {
  std::mt19937_64 random(8);
  std::vector<int> lanes(2 * kCartPoleBatch);
  std::iota(lanes.begin(), lanes.end(), 0);
  for (std::size_t count = 0; count <= kCartPoleBatch; ++count) {
    std::shuffle(lanes.begin(), lanes.end(), random);
    std::vector<CartPoleState> states;
    std::vector<std::int32_t> actions;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      states.push_back(CartPoleReset(count, lane));
      actions.push_back(static_cast<std::int32_t>(random() % 2));
    }
    ExpectTheSameBits({lanes.begin(), lanes.begin() + static_cast<std::ptrdiff_t>(count)}, states,
                      actions);
  }
}

TEST(CartPoleBatchTest, AnglesAtTheBoundsAndBeyondAreLibms) {
  const double kInf = std::numeric_limits<double>::infinity();
  std::vector<CartPoleState> states;
  for (const double theta :
       {0.0, -0.0, 5e-324, 1e-308, 1e-160, kMostTheta, -kMostTheta, std::nextafter(kMostTheta, 1),
        0.21, std::nextafter(0.21, 1), 0.418, 1.0, -3.2, 1e6, 1e300, kInf}) {
    states.push_back({0.1, -0.2, theta, 0.3});
  }
  std::vector<int> lanes(states.size());
  std::iota(lanes.begin(), lanes.end(), 0);
  for (int action = 0; action < kCartPoleActions; ++action) {
    ExpectTheSameBits(lanes, states, std::vector<std::int32_t>(states.size(), action));
  }
}

TEST(CartPoleBatchDeathTest, MoreThanABatchAreRefused) {
  std::vector<int> lanes(kCartPoleBatch + 1);
  std::iota(lanes.begin(), lanes.end(), 0);
  std::vector<CartPoleState> states(lanes.size());
  const std::vector<std::int32_t> actions(lanes.size());
  std::array<bool, kCartPoleBatch + 1> over;
  EXPECT_DEATH(CartPoleStepBatch(lanes, actions.data(), states.data(), over.data()),
               "more carts than a batch takes");
}

}  // namespace
}  // namespace tetrion
