#pragma once

#include <cmath>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"

// Gymnasium's CartPole-v1 (Barto, Sutton and Anderson 1983; explicit Euler), in double and in its
// order of operations. The CPU build (lib/envs compiles with -ffp-contract=off) equals it bit for
// bit from the same start as long as numpy's sin and cos are libm's; CUDA's sin and cos may differ
// in the last bit. The functions are static, so that no linker puts the copy of a file compiled
// without that flag, or for another instruction set, in the place of another's.

namespace tetrion {

inline constexpr int kCartPoleActions = 2;  // push left, push right

struct CartPoleState {
  double x, x_dot, theta, theta_dot;  // m, m/s, rad, rad/s
};

// The `cartpole` record and the `vector` view alike: the state rounded to f32. 16 bytes.
struct CartPoleRecord {
  float x, x_dot, theta, theta_dot;
};
static_assert(sizeof(CartPoleRecord) == 16);

// Start of token `token_id`: uniform in +-0.05, the four words of block 0 of purpose kInitialState
// in the order x, x_dot, theta, theta_dot.
TETRION_HOST_DEVICE static inline CartPoleState CartPoleReset(std::uint64_t seed,
                                                              std::uint64_t token_id) {
  const PhiloxBlock block = PhiloxDraw(seed, token_id, 0, PhiloxPurpose::kInitialState);
  double start[4];
  for (int i = 0; i < 4; ++i) start[i] = -0.05 + 0.1 * UnitDraw(block.word[i]);
  return {start[0], start[1], start[2], start[3]};
}

// Whether the cart has left the track or the pole has fallen: the episode has ended.
TETRION_HOST_DEVICE static inline bool CartPoleIsOver(const CartPoleState& state) {
  constexpr double kMaxX = 2.4, kMaxTheta = 12 * 2 * 3.141592653589793 / 360;
  // Without branches, so that a loop over carts becomes vectors.
  return (state.x < -kMaxX) | (state.x > kMaxX) | (state.theta < -kMaxTheta) |
         (state.theta > kMaxTheta);
}

// One push of a pole whose angle has this sine and cosine; returns whether the cart left the track
// or the pole fell. The reward is 1 either way.
TETRION_HOST_DEVICE static inline bool CartPolePush(CartPoleState& state, int action,
                                                    double sin_theta, double cos_theta) {
  constexpr double kGravity = 9.8, kPoleMass = 0.1, kTotalMass = 0.1 + 1.0, kHalfLength = 0.5;
  constexpr double kPoleMassLength = kPoleMass * kHalfLength, kForce = 10.0, kTau = 0.02;
  const double force = action == 1 ? kForce : -kForce;
  const double temp =
      (force + kPoleMassLength * (state.theta_dot * state.theta_dot) * sin_theta) / kTotalMass;
  const double theta_acc =
      (kGravity * sin_theta - cos_theta * temp) /
      (kHalfLength * (4.0 / 3.0 - kPoleMass * (cos_theta * cos_theta) / kTotalMass));
  const double x_acc = temp - kPoleMassLength * theta_acc * cos_theta / kTotalMass;
  state.x = state.x + kTau * state.x_dot;
  state.x_dot = state.x_dot + kTau * x_acc;
  state.theta = state.theta + kTau * state.theta_dot;
  state.theta_dot = state.theta_dot + kTau * theta_acc;
  return CartPoleIsOver(state);
}

TETRION_HOST_DEVICE static inline bool CartPoleStep(CartPoleState& state, int action) {
  return CartPolePush(state, action, sin(state.theta), cos(state.theta));
}

TETRION_HOST_DEVICE static inline CartPoleRecord RecordOf(const CartPoleState& state) {
  return {static_cast<float>(state.x), static_cast<float>(state.x_dot),
          static_cast<float>(state.theta), static_cast<float>(state.theta_dot)};
}

}  // namespace tetrion
