#include "lib/envs/cartpole/cartpole_batch.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tetrion {
namespace {

constexpr double kMostTheta = 12 * 2 * 3.141592653589793 / 360;

// Carts as columns.
struct Columns {
  explicit Columns(const std::vector<CartPoleState>& states) {
    for (const CartPoleState& state : states) {
      x.push_back(state.x);
      x_dot.push_back(state.x_dot);
      theta.push_back(state.theta);
      theta_dot.push_back(state.theta_dot);
    }
  }
  CartPoleState At(std::size_t i) const { return {x[i], x_dot[i], theta[i], theta_dot[i]}; }
  CartPoleColumns Of(std::size_t first = 0) {
    return {x.data() + first, x_dot.data() + first, theta.data() + first, theta_dot.data() + first};
  }

  std::vector<double> x, x_dot, theta, theta_dot;
};

// Plays `count` of `states` from `first` on together and one by one, with all
// kernels that this machine can run.
void ExpectTheSameBits(const std::vector<CartPoleState>& states,
                       const std::vector<std::int32_t>& actions, std::size_t first,
                       std::size_t count) {
  for (const CartPoleKernels* kernels : AllCartPoleKernels()) {
    std::vector<CartPoleState> expected = states;
    Columns carts(states);
    std::array<std::uint32_t, kCartPoleBatch> over;
    std::array<CartPoleRecord, kCartPoleBatch> records;
    kernels->step(carts.Of(first), actions.data() + first, count, over.data());
    kernels->records(carts.Of(first), count, records.data());
    for (std::size_t i = 0; i < count; ++i) {
      CartPoleState& state = expected[first + i];
      const double theta = state.theta;
      ASSERT_EQ(over[i], CartPoleStep(state, actions[first + i]) ? 1U : 0U) << theta;
      const CartPoleRecord record = RecordOf(state);
      ASSERT_EQ(std::memcmp(&records[i], &record, sizeof(record)), 0) << theta;
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      const CartPoleState state = carts.At(i);
      ASSERT_EQ(std::memcmp(&state, &expected[i], sizeof(state)), 0)
          << kernels->name << ", cart " << i << " beside those from " << first;
    }
  }
}

TEST(CartPoleBatchTest, MillionsOfAnglesGiveTheBitsOfOneCartAtATime) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<CartPoleState> states(kCartPoleBatch);
  std::vector<std::int32_t> actions(kCartPoleBatch);
  for (int batch = 0; batch < 32768; ++batch) {
    for (std::size_t i = 0; i < kCartPoleBatch; ++i) {
      // Angles of every size that play leads to, from 1e-10 on.
      const double theta = std::ldexp(kMostTheta * unit(random), -(batch % 32));
      states[i] = {2.4 * unit(random), 3 * unit(random), theta, 3 * unit(random)};
      actions[i] = static_cast<std::int32_t>(random() % 2);
    }
    ExpectTheSameBits(states, actions, 0, kCartPoleBatch);
  }
}

TEST(CartPoleBatchTest, AnyNumberOfNeighboursIsPlayedAndNoOtherCart) {
  std::mt19937_64 random(8);
  for (std::size_t count = 0; count <= kCartPoleBatch; ++count) {
    std::vector<CartPoleState> states;
    std::vector<std::int32_t> actions;
    for (std::size_t cart = 0; cart < 2 * kCartPoleBatch; ++cart) {
      states.push_back(CartPoleReset(count, cart));
      actions.push_back(static_cast<std::int32_t>(random() % 2));
    }
    ExpectTheSameBits(states, actions, random() % (2 * kCartPoleBatch - count + 1), count);
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
  for (int action = 0; action < kCartPoleActions; ++action) {
    ExpectTheSameBits(states, std::vector<std::int32_t>(states.size(), action), 0, states.size());
  }
}

}  // namespace
}  // namespace tetrion
