#pragma once

#include <cmath>

#include "lib/cuda/kernel.h"
#include "lib/nn/dreamer/mix_legal.h"
#include "lib/policy/cuda/decided_row.h"
#include "lib/policy/cuda/lane_logits.cuh"

// What stands around DecideByLogits for an actor of DreamerV3, a thread a lane.

namespace tetrion {

// Logits [A, M] f32 in place: those of legal actions become the mixture's with the uniform
// distribution over the legal ones, which has `share`.
__global__ void MixLegalLogits(DecidedRow row, cuda::DeviceSpan<float> logits, double share) {
  const std::size_t lane = blockIdx.x * blockDim.x + threadIdx.x, lanes = row.slots.lanes;
  if (lane >= lanes) return;
  const RowView view = row.slots.At(*row.row);
  const LaneLogits own = {logits.data() + lane, lanes,
                          view.mask != nullptr ? view.mask[lane] : ~std::uint64_t{0}};
  const float log_normaliser = LogNormaliser(own, row.actions);
  int legal = 0;
  for (std::int32_t a = 0; a < row.actions; ++a) legal += own.Legal(a) ? 1 : 0;
  for (std::int32_t a = 0; a < row.actions; ++a) {
    if (!own.Legal(a)) continue;
    logits[static_cast<std::size_t>(a) * lanes + lane] =
        MixedLogit(own[a], log_normaliser, share, legal);
  }
}

// What each lane took, for its next step; where its logits were not finite it has no state.
__global__ void KeepActions(DecidedRow row, cuda::DeviceSpan<const float> logits,
                            cuda::DeviceSpan<std::int32_t> action, std::int32_t no_state) {
  const std::size_t lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= row.slots.lanes) return;
  const std::int32_t taken = row.slots.At(*row.row).action[lane];
  const float logit = logits[static_cast<std::size_t>(taken) * row.slots.lanes + lane];
  action[lane] = std::isfinite(logit) ? taken : no_state;
}

}  // namespace tetrion
