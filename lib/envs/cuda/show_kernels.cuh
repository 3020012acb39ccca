#pragma once

// Records that are drawn into the row from states: neighbouring threads store neighbouring bytes or
// words. Lanes without an episode show zeros.

#include "lib/cuda/kernel.h"
#include "lib/envs/cuda/lane_spans.h"
#include "lib/envs/views/packed2_word.h"
#include "lib/envs/views/plane_at.h"
#include "lib/frame/row_slots.h"

namespace tetrion {

// A thread a word: [M, kPacked2Words].
__global__ void DrawPictures(LaneSpans lanes, cuda::DeviceSpan<const TetrisRecord> states,
                             RowSlots slots) {
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t lane = at / kPacked2Words;
  if (lane >= lanes.phase.size()) return;
  auto* words = reinterpret_cast<std::uint32_t*>(slots.At(lanes.totals[0].row).record);
  const bool is_idle = lanes.phase[lane] == LanePhase::kIdle;
  words[at] = is_idle ? 0 : Packed2Word(states[lane], static_cast<int>(at % kPacked2Words));
}

// A thread an element: [M, record_bytes].
__global__ void DrawPlanes(LaneSpans lanes, cuda::DeviceSpan<const TetrisRecord> states,
                           RowSlots slots) {
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t lane = at / slots.record_bytes;
  if (lane >= lanes.phase.size()) return;
  const bool is_idle = lanes.phase[lane] == LanePhase::kIdle;
  const auto element = static_cast<int>(at % slots.record_bytes);
  const bool shown = !is_idle && PlaneAt(states[lane], element);
  slots.At(lanes.totals[0].row).record[at] = std::byte{shown};
}

}  // namespace tetrion
