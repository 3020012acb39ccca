#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"
#include "lib/frame/row_slots.h"
#include "lib/replay/cuda/push_step.h"

// The fields of a row into its slot: copies, no arithmetic.

namespace tetrion {

// One thread a lane.
__global__ void PushStep(RowSlots slots, std::uint64_t t, StepFields fields) {
  const std::uint32_t lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= slots.lanes) return;
  const RowView row = slots.At(t);
  if (lane == 0) *row.header = {t, fields.policy_version, 0};
  row.action[lane] = fields.action[lane];
  row.reward[lane] = fields.reward[lane];
  row.flags[lane] = fields.flags[lane];
  row.cont[lane] = fields.cont[lane];
  row.episode_id[lane] = fields.episode_id[lane];
  row.log_prob[lane] = fields.log_prob == nullptr ? 0.0F : fields.log_prob[lane];
  if (row.mask != nullptr) row.mask[lane] = fields.mask[lane];
}

}  // namespace tetrion
