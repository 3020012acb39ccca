#pragma once

// Records that are drawn into the row from states: neighbouring threads store neighbouring bytes or
// words. Lanes without an episode show zeros.

#include "lib/cuda/kernel.h"
#include "lib/envs/cuda/lane_spans.h"
#include "lib/envs/views/packed2_word.h"
#include "lib/envs/views/planes_bits.h"
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

inline constexpr unsigned kPlanesLanes = 128;  // of a block, a thread each

// A thread makes the bits of a lane, the block spreads them: [M, record_bytes].
__global__ void DrawPlanes(LaneSpans lanes, cuda::DeviceSpan<const TetrisRecord> states,
                           RowSlots slots, int queue_size) {
  TETRION_SHARED(std::uint32_t, bits, kPlanesLanes* kPlanesWords);
  const std::size_t first = std::size_t{blockIdx.x} * kPlanesLanes, lane = first + threadIdx.x;
  if (lane < lanes.phase.size()) {
    const auto words = bits.Part(threadIdx.x * kPlanesWords, kPlanesWords);
    if (lanes.phase[lane] == LanePhase::kIdle) {
      for (int word = 0; word < kPlanesWords; ++word) words[word] = 0U;
    } else {
      MakePlanesBits(states[lane], queue_size, words);
    }
  }
  __syncthreads();
  const std::size_t left = lanes.phase.size() - first;
  const std::size_t elements = (left < kPlanesLanes ? left : kPlanesLanes) * slots.record_bytes;
  std::byte* out = slots.At(lanes.totals[0].row).record + first * slots.record_bytes;
  for (std::size_t at = threadIdx.x; at < elements; at += kPlanesLanes) {
    const auto element = static_cast<unsigned>(at % slots.record_bytes);
    const std::uint32_t word = bits[at / slots.record_bytes * kPlanesWords + element / 32];
    out[at] = std::byte{(word >> (element % 32) & 1U) != 0};
  }
}

}  // namespace tetrion
