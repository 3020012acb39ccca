#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lib/envs/cartpole/cartpole_batch.h"

// The kernels, included by a source for each instruction set. All of it is the source's own, and it
// calls no inline function but the rules', which are static, too: a linker could put one that was
// compiled for another instruction set in its place.

namespace tetrion {
namespace {

constexpr std::size_t kN = kCartPoleBatch;
static_assert(kN <= 256, "a place in a batch is a byte");

// Of the angles of a batch.
struct Angles {
  alignas(64) double sin[kN];
  alignas(64) double cos[kN];
  alignas(64) std::uint64_t sin_unsure[kN];  // 1 where libm has to be asked, else 0
  alignas(64) std::uint64_t cos_unsure[kN];
};

// Sines and cosines of angles up to kMostAngle, libm's to the bit but for the sign of a zero, which
// no push shows, or a mark that one is unsure.
//
// A Taylor polynomial gives each as a sum high + low of two doubles, where high is the sum rounded.
// Errors are counted in units of high's last place. Either sum is wrong by less than 0.001, since
// its first two terms are kept exact. glibc's own (sysdeps/ieee754/dbl-64/s_sin.c) is rounded from
// a sum that is wrong, too: a sine's by at most 0.0234, just above 0.125 and where it is computed
// without fused operations (0.0156 with them), a cosine's by 0.013. So both are the same double
// unless low is within 0.025 or 0.014 of a half. A low 1.055 or 1.035 times as large rounds to high
// only where it is at least 0.026 or 0.016 away from one.
void Approximate(const double* __restrict thetas, std::size_t n, Angles& __restrict angles) {
  constexpr double kMostAngle = 0.21, kWiderSin = 1.055, kWiderCos = 1.035;
  constexpr double kSixth = 1.0 / 6;
  constexpr double kSixthRest = 1.0 / 108086391056891904;  // 1/6 - kSixth: 2^-54 / 6
  for (std::size_t i = 0; i < n; ++i) {
    const double theta = thetas[i];
    const double square = theta * theta;
    const double square_rest = fma(theta, theta, -square);

    double odd = 1.0 / 6227020800;
    odd = fma(odd, square, -1.0 / 39916800);
    odd = fma(odd, square, 1.0 / 362880);
    odd = fma(odd, square, -1.0 / 5040);
    odd = fma(odd, square, 1.0 / 120);
    const double cube = theta * square;
    const double cube_rest = fma(theta, square, -cube) + theta * square_rest;
    const double second = cube * kSixth;
    const double second_rest = fma(cube, kSixth, -second) + cube * kSixthRest + cube_rest * kSixth;
    const double sin_first = theta - second;
    const double sin_tail = theta - sin_first - second - second_rest + cube * square * odd;
    const double sin_high = sin_first + sin_tail;
    const double sin_low = sin_first - sin_high + sin_tail;

    double even = 1.0 / 479001600;
    even = fma(even, square, -1.0 / 3628800);
    even = fma(even, square, 1.0 / 40320);
    even = fma(even, square, -1.0 / 720);
    even = fma(even, square, 1.0 / 24);
    const double half = 0.5 * square;
    const double first = 1.0 - half;
    const double cos_tail = 1.0 - first - half - 0.5 * square_rest + square * square * even;
    const double cos_high = first + cos_tail;
    const double cos_low = first - cos_high + cos_tail;

    angles.sin[i] = sin_high;
    angles.cos[i] = cos_high;
    // Without a branch, so that the loop becomes vectors.
    const bool is_small = fabs(theta) <= kMostAngle;
    const bool is_sin_sure = is_small & (sin_high + kWiderSin * sin_low == sin_high);
    const bool is_cos_sure = is_small & (cos_high + kWiderCos * cos_low == cos_high);
    angles.sin_unsure[i] = is_sin_sure ? 0 : 1;
    angles.cos_unsure[i] = is_cos_sure ? 0 : 1;
  }
}

// values[i] = function(theta[i]) for each of n that is unsure.
template <typename Function>
void AskLibm(const double* theta, const std::uint64_t* unsure, std::size_t n, double* values,
             Function function) {
  // Listed first: a branch for each angle would be guessed wrong at every other unsure one.
  std::uint8_t listed[kN];
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    listed[count] = static_cast<std::uint8_t>(i);
    count += unsure[i];
  }
  for (std::size_t k = 0; k < count; ++k) values[listed[k]] = function(theta[listed[k]]);
}

// Columns that share no memory, [n].
void Push(double* __restrict x, double* __restrict x_dot, double* __restrict theta,
          double* __restrict theta_dot, const std::int32_t* __restrict actions, std::size_t n,
          const Angles& __restrict angles, std::uint32_t* __restrict over) {
  for (std::size_t i = 0; i < n; ++i) {
    CartPoleState state = {x[i], x_dot[i], theta[i], theta_dot[i]};
    over[i] = CartPolePush(state, actions[i], angles.sin[i], angles.cos[i]) ? 1 : 0;
    x[i] = state.x;
    x_dot[i] = state.x_dot;
    theta[i] = state.theta;
    theta_dot[i] = state.theta_dot;
  }
}

void StepCarts(const CartPoleColumns& carts, const std::int32_t* actions, std::size_t n,
               std::uint32_t* over) {
  Angles angles;
  Approximate(carts.theta, n, angles);
  AskLibm(carts.theta, angles.sin_unsure, n, angles.sin, [](double theta) { return sin(theta); });
  AskLibm(carts.theta, angles.cos_unsure, n, angles.cos, [](double theta) { return cos(theta); });
  Push(carts.x, carts.x_dot, carts.theta, carts.theta_dot, actions, n, angles, over);
}

void RecordsOfCarts(const CartPoleColumns& carts, std::size_t n, CartPoleRecord* out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = RecordOf({carts.x[i], carts.x_dot[i], carts.theta[i], carts.theta_dot[i]});
  }
}

constexpr CartPoleKernels kTable = {TETRION_KERNELS_NAME, &StepCarts, &RecordsOfCarts};

}  // namespace
}  // namespace tetrion
