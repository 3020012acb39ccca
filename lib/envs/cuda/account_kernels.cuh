#pragma once

// What happens to the lanes' account between steps, so that no block of a step sees it change.

#include "lib/cuda/kernel.h"
#include "lib/envs/cuda/lane_spans.h"

namespace tetrion {

// No lane has an episode, and row 0 is the next; the rest of the memory is 0 already.
__global__ void BeginLanes(LaneSpans lanes) {
  const std::size_t lane = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (lane >= lanes.phase.size()) return;
  lanes.episode_ids[lane] = -1;
  atomicAdd(&lanes.needs[blockIdx.x], 1U);
}

__global__ void AdvanceRow(cuda::DeviceSpan<LaneTotals> all) {
  LaneTotals& totals = all[0];
  totals.row += 1;
  totals.begun += totals.begins_of_row;
  totals.env_steps += totals.steps_of_row;
  totals.begins_of_row = 0;
  totals.steps_of_row = 0;
}

// Tokens up to number `added` are in memory.
__global__ void NoteAdded(cuda::DeviceSpan<LaneTotals> totals, std::uint64_t added) {
  totals[0].added = added;
}

// Leaves the oldest undrained episodes, and the account as it was before, for a copy to the host.
// One block.
__global__ void CollectDrain(LaneSpans lanes, cuda::DeviceSpan<LaneTotals> account,
                             cuda::DeviceSpan<EndedEpisode> episodes) {
  LaneTotals& totals = lanes.totals[0];
  const std::uint64_t first = totals.drained, left = totals.ended - first;
  const std::uint64_t count = left < episodes.size() ? left : episodes.size();
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    episodes[i] = lanes.ended[(first + i) % lanes.ended.size()];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  account[0] = totals;
  totals.drained = first + count;
}

// `tokens` bring no episode; none that was added is left.
__global__ void NoteGivenBack(cuda::DeviceSpan<LaneTotals> totals, std::uint64_t tokens) {
  totals[0].given_back += tokens;
  totals[0].begun = totals[0].added;
}

}  // namespace tetrion
