#pragma once

#include <cstdint>

#include "lib/core/check.h"
#include "lib/cuda/kernel_spans.h"
#include "lib/frame/row_slots.h"
#include "lib/frame/specs.h"
#include "lib/policy/cuda/device_policy.h"
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

// Row `*row` of `slots`, to be decided by `policy` with parameters of version `*version`; what the
// pointers are: DevicePolicy::Decide. CHECKs that the slots are the environment's and have the
// policy's lanes.
inline DecidedRow RowToDecide(const RowSlots& slots, const std::uint64_t* row,
                              const std::uint64_t* token_ids, const std::uint32_t* steps,
                              const DevicePolicyConfig& policy, const EnvSpec& env,
                              const std::uint32_t* version) {
  TETRION_CHECK(policy.lanes > 0 && slots.lanes == static_cast<std::uint32_t>(policy.lanes) &&
                    slots.record_bytes == env.obs.record_bytes &&
                    (slots.mask != nullptr) == env.action.has_mask,
                "slots of the environment and lanes that the policy was made for");
  DecidedRow decided;
  decided.slots = slots;
  decided.row = row;
  decided.version = version;
  decided.token_ids = {token_ids, slots.lanes};
  decided.steps = {steps, slots.lanes};
  decided.seed = policy.seed;
  decided.all_mask = MaskOfAll(env.action.count);
  decided.actions = env.action.count;
  return decided;
}

// Bytes of `floats` f32 for each of a policy's lanes.
inline std::size_t LaneFloatBytes(int lanes, std::int64_t floats) {
  TETRION_CHECK(lanes > 0 && floats > 0, "a policy decides for lanes");
  return static_cast<std::size_t>(lanes) * static_cast<std::size_t>(floats) * sizeof(float);
}

// Threads of a block of the kernels with a thread a lane, and the blocks for all lanes.
inline constexpr unsigned kDecideThreads = 128;
inline unsigned DecideBlocks(const DecidedRow& decided) {
  return (decided.slots.lanes + kDecideThreads - 1) / kDecideThreads;
}

}  // namespace tetrion
