#pragma once

#include <cstdint>
#include <span>

#include "lib/envs/cartpole/cartpole_rules.h"

namespace tetrion {

// As many as one call takes.
inline constexpr std::size_t kCartPoleBatch = 64;

// CartPoleStep of states[lane] with actions[lane] for each of `lanes`, at most kCartPoleBatch and
// none twice, in vectors and with the same bits. over[i] is what it returns for lanes[i].
void CartPoleStepBatch(std::span<const int> lanes, const std::int32_t* actions,
                       CartPoleState* states, bool* over);

}  // namespace tetrion
