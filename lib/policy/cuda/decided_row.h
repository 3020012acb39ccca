#pragma once

#include <cstdint>

#include "lib/core/check.h"
#include "lib/cuda/kernel_spans.h"
#include "lib/frame/row_slots.h"
#include "lib/frame/specs.h"
#include "lib/policy/uniform_choice.h"

namespace tetrion {

// A row to decide and what its draws depend on, as kernels take it. All pointers are to device
// memory.
struct DecidedRow {
  RowSlots slots;
  const std::uint64_t* row = nullptr;               // its number
  const std::uint32_t* version = nullptr;           // of the parameters that decide
  cuda::DeviceSpan<const std::uint64_t> token_ids;  // [M]
  cuda::DeviceSpan<const std::uint32_t> steps;      // [M]
  std::uint64_t seed = 0;
  std::uint64_t all_mask = 0;  // bits of the actions that exist
  std::int32_t actions = 0;    // A
};

// Of M `lanes` and the actions of an environment, decided under `seed`. CHECKs that the slots are
// the environment's.
inline DecidedRow RowToDecide(const RowSlots& slots, int lanes, const EnvSpec& env,
                              std::uint64_t seed) {
  TETRION_CHECK(lanes > 0 && slots.lanes == static_cast<std::uint32_t>(lanes) &&
                    slots.record_bytes == env.obs.record_bytes &&
                    (slots.mask != nullptr) == env.action.has_mask,
                "slots of the environment and lanes that the policy was made for");
  DecidedRow decided;
  decided.slots = slots;
  decided.seed = seed;
  decided.all_mask = MaskOfAll(env.action.count);
  decided.actions = env.action.count;
  return decided;
}

// Threads of a block of the kernels with a thread a lane, and the blocks for all lanes.
inline constexpr unsigned kDecideThreads = 128;
inline unsigned DecideBlocks(const DecidedRow& decided) {
  return (decided.slots.lanes + kDecideThreads - 1) / kDecideThreads;
}

}  // namespace tetrion
