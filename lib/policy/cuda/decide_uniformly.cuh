#pragma once

#include "lib/policy/cuda/lane_draw.cuh"

// Actions of one row of device memory where no network decides, a thread a lane, by the arithmetic
// of RandomPolicy.
//
// Numeric policy: integers, but for the log-probability, whose last bits are the device's.

namespace tetrion {

// Every legal action is equally likely.
__global__ void DecideUniformly(DecidedRow row) {
  const std::size_t lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= row.slots.lanes) return;
  const RowView view = row.slots.At(*row.row);
  if (lane == 0) view.header->policy_version = *row.version;
  UniformChoice choice;
  if ((view.flags[lane] & kIsLast) == 0) {
    choice = ChooseUniformly(row, view, lane, DrawOf(row, lane).word[0]);
  }
  view.action[lane] = choice.action;
  view.log_prob[lane] = choice.log_prob;
}

}  // namespace tetrion
