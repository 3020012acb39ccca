#pragma once

#include <cstdint>

#include "lib/cuda/device.h"
#include "lib/frame/row_slots.h"

namespace tetrion {

// What belongs to a row besides its records: columns [N] in device memory, as RowLayout has them.
struct StepFields {
  const std::int32_t* action = nullptr;
  const float* reward = nullptr;
  const std::uint8_t* flags = nullptr;  // RowFlags: is_first, is_last and how it ended
  const float* cont = nullptr;          // `continue`
  const std::int32_t* episode_id = nullptr;
  const float* log_prob = nullptr;      // null: 0
  const std::uint64_t* mask = nullptr;  // of rows with masks
  std::uint32_t policy_version = 0;
};

// Enqueues the copy of the fields into logical row t of a shard, header included: one launch.
void LaunchPushStep(cuda::Stream& stream, const RowSlots& slots, std::uint64_t t,
                    const StepFields& fields);

}  // namespace tetrion
