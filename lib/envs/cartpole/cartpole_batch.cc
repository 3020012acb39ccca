#include "lib/envs/cartpole/cartpole_batch.h"

#include <array>
#include <cmath>

#include "lib/core/align.h"
#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::size_t kN = kCartPoleBatch;
constexpr std::size_t kPad = 8;  // a whole number of vectors of any kind
static_assert(kN % kPad == 0 && kN <= 256);

// The states of a batch, structure-of-arrays.
struct Batch {
  alignas(64) double x[kN];
  alignas(64) double x_dot[kN];
  alignas(64) double theta[kN];
  alignas(64) double theta_dot[kN];
  alignas(64) double sin_theta[kN];
  alignas(64) double cos_theta[kN];
  alignas(64) std::int64_t action[kN];
  alignas(64) std::uint64_t unsure[kN];  // whether libm has to be asked
  alignas(64) std::uint64_t over[kN];
};

// Sines and cosines of angles up to kMostAngle, libm's to the bit, or a mark that one is unsure.
//
// A Taylor polynomial gives each as a sum high + low of two doubles, where high is the sum rounded.
// Errors are counted in units of high's last place. The sine's sum is wrong by less than 0.03: four
// roundings of a tail below theta / 136. The cosine's is wrong by less than 0.001, since its first
// two terms are kept exact. glibc says of its own that they are wrong by at most 0.518 and 0.513
// (sysdeps/ieee754/dbl-64/s_sin.c). So both are the same double unless low is within 0.048 or 0.014
// of a half. A low 1.12 or 1.05 times as large rounds to high only where it is at least 0.053 or
// 0.023 away from one.
void Angles(Batch& batch, std::size_t n) {
  constexpr double kMostAngle = 0.21, kWiderSin = 1.12, kWiderCos = 1.05;
  for (std::size_t i = 0; i < n; ++i) {
    const double theta = batch.theta[i];
    const double square = theta * theta;
    const double square_rest = std::fma(theta, theta, -square);

    double odd = 1.0 / 6227020800;
    odd = std::fma(odd, square, -1.0 / 39916800);
    odd = std::fma(odd, square, 1.0 / 362880);
    odd = std::fma(odd, square, -1.0 / 5040);
    odd = std::fma(odd, square, 1.0 / 120);
    odd = std::fma(odd, square, -1.0 / 6);
    const double sin_tail = theta * square * odd;
    const double sin_high = theta + sin_tail;
    const double sin_low = theta - sin_high + sin_tail;

    double even = 1.0 / 479001600;
    even = std::fma(even, square, -1.0 / 3628800);
    even = std::fma(even, square, 1.0 / 40320);
    even = std::fma(even, square, -1.0 / 720);
    even = std::fma(even, square, 1.0 / 24);
    const double half = 0.5 * square;
    const double first = 1.0 - half;
    const double cos_tail = 1.0 - first - half - 0.5 * square_rest + square * square * even;
    const double cos_high = first + cos_tail;
    const double cos_low = first - cos_high + cos_tail;

    batch.sin_theta[i] = sin_high;
    batch.cos_theta[i] = cos_high;
    // Without a branch, so that the loop becomes vectors.
    const bool is_sure = (sin_high + kWiderSin * sin_low == sin_high) &
                         (cos_high + kWiderCos * cos_low == cos_high) &
                         (std::fabs(theta) <= kMostAngle);
    batch.unsure[i] = is_sure ? 0 : 1;
  }
}

// The angles whose sine or cosine is unsure.
void AskLibm(Batch& batch, std::size_t n) {
  // Listed first: a branch for each angle would be guessed wrong at every other unsure one.
  std::array<std::uint8_t, kN> unsure;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    unsure[count] = static_cast<std::uint8_t>(i);
    count += batch.unsure[i];
  }
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = unsure[k];
    batch.sin_theta[i] = sin(batch.theta[i]);
    batch.cos_theta[i] = cos(batch.theta[i]);
  }
}

void Push(Batch& batch, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    CartPoleState state = {batch.x[i], batch.x_dot[i], batch.theta[i], batch.theta_dot[i]};
    const bool over = CartPolePush(state, static_cast<int>(batch.action[i]), batch.sin_theta[i],
                                   batch.cos_theta[i]);
    batch.x[i] = state.x;
    batch.x_dot[i] = state.x_dot;
    batch.theta[i] = state.theta;
    batch.theta_dot[i] = state.theta_dot;
    batch.over[i] = over ? 1 : 0;
  }
}

}  // namespace

void CartPoleStepBatch(std::span<const int> lanes, const std::int32_t* actions,
                       CartPoleState* states, bool* over) {
  TETRION_CHECK(lanes.size() <= kN, "more carts than a batch takes");
  Batch batch;
  const std::size_t n = lanes.size();
  for (std::size_t i = 0; i < n; ++i) {
    const CartPoleState& state = states[lanes[i]];
    batch.x[i] = state.x;
    batch.x_dot[i] = state.x_dot;
    batch.theta[i] = state.theta;
    batch.theta_dot[i] = state.theta_dot;
    batch.action[i] = actions[lanes[i]];
  }
  const std::size_t padded = AlignUp(n, kPad);
  for (std::size_t i = n; i < padded; ++i) {
    batch.x[i] = batch.x_dot[i] = batch.theta[i] = batch.theta_dot[i] = 0;
    batch.action[i] = 0;
  }
  Angles(batch, padded);
  AskLibm(batch, n);
  Push(batch, padded);
  for (std::size_t i = 0; i < n; ++i) {
    states[lanes[i]] = {batch.x[i], batch.x_dot[i], batch.theta[i], batch.theta_dot[i]};
    over[i] = batch.over[i] != 0;
  }
}

}  // namespace tetrion
