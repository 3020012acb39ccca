#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/envs/cartpole/cartpole_rules.h"

namespace tetrion {

// As many as one call takes.
inline constexpr std::size_t kCartPoleBatch = 64;

// Carts, a column for each number of their state.
struct CartPoleColumns {
  double *x, *x_dot, *theta, *theta_dot;  // [n]
};

// The rules for n <= kCartPoleBatch carts at a time, in vectors and with the same bits, once for
// each instruction set.
struct CartPoleKernels {
  const char* name;
  // CartPoleStep of each cart with its one of actions [n]; over[i] is 1 where that returns true,
  // else 0.
  void (*step)(const CartPoleColumns& carts, const std::int32_t* actions, std::size_t n,
               std::uint32_t* over);
  // RecordOf each cart.
  void (*records)(const CartPoleColumns& carts, std::size_t n, CartPoleRecord* out);
};

// Those of the widest vectors that this machine has.
const CartPoleKernels& BestCartPoleKernels();
// All that this machine can run, the best one last.
std::vector<const CartPoleKernels*> AllCartPoleKernels();

}  // namespace tetrion
