#pragma once

// Records that are drawn into the row from states: neighbouring threads store neighbouring bytes or
// words. Lanes without an episode show zeros.

#include "lib/cuda/kernel.h"
#include "lib/envs/cuda/lane_spans.h"
#include "lib/envs/views/packed2_band.h"
#include "lib/envs/views/planes_bits.h"
#include "lib/frame/row_slots.h"

namespace tetrion {

inline constexpr unsigned kPictureLanes = 16;  // of a block
inline constexpr unsigned kPictureThreads = kPictureLanes * Packed2Band::kCount;

// A thread draws a band of a lane's picture, the block stores the words: [M, kPacked2Words]. Bands
// have an odd number of words, so that the threads of a warp write to different banks.
__global__ void DrawPictures(LaneSpans lanes, cuda::DeviceSpan<const TetrisRecord> states,
                             RowSlots slots) {
  TETRION_SHARED(std::uint32_t, words, kPictureLanes* kPacked2Words);
  const std::size_t first = std::size_t{blockIdx.x} * kPictureLanes;
  const std::size_t lane = first + threadIdx.x / Packed2Band::kCount;
  if (lane < lanes.phase.size()) {
    const auto band = words.Part(threadIdx.x * Packed2Band::kWords, Packed2Band::kWords);
    if (lanes.phase[lane] == LanePhase::kIdle) {
      for (int word = 0; word < Packed2Band::kWords; ++word) band[word] = 0U;
    } else {
      DrawPacked2Band(states[lane], static_cast<int>(threadIdx.x % Packed2Band::kCount), band);
    }
  }
  __syncthreads();
  const std::size_t left = lanes.phase.size() - first;
  const unsigned count =
      static_cast<unsigned>(left < kPictureLanes ? left : kPictureLanes) * kPacked2Words;
  auto* const out = reinterpret_cast<std::uint32_t*>(slots.At(lanes.totals[0].row).record) +
                    first * kPacked2Words;
  for (unsigned at = threadIdx.x; at < count; at += kPictureThreads) out[at] = words[at];
}

inline constexpr unsigned kPlanesLanes = 16, kPlanesThreads = 128;  // of a block

// Four bits as four bytes, the lowest first.
__device__ inline std::uint32_t BytesOfBits(std::uint32_t bits) {
  return (bits & 15U) * 0x204081U & 0x01010101U;
}

// A thread makes the bits of a lane, the block spreads them: [M, record_bytes].
__global__ void DrawPlanes(LaneSpans lanes, cuda::DeviceSpan<const TetrisRecord> states,
                           RowSlots slots, int queue_size) {
  TETRION_SHARED(std::uint32_t, bits, kPlanesLanes* kPlanesWords);
  const std::size_t first = std::size_t{blockIdx.x} * kPlanesLanes, lane = first + threadIdx.x;
  if (threadIdx.x < kPlanesLanes && lane < lanes.phase.size()) {
    const auto words = bits.Part(threadIdx.x * kPlanesWords, kPlanesWords);
    if (lanes.phase[lane] == LanePhase::kIdle) {
      for (int word = 0; word < kPlanesWords; ++word) words[word] = 0U;
    } else {
      MakePlanesBits(states[lane], queue_size, words);
    }
  }
  __syncthreads();
  const std::size_t left = lanes.phase.size() - first;
  const unsigned record_bytes = slots.record_bytes;
  const unsigned bytes =
      static_cast<unsigned>(left < kPlanesLanes ? left : kPlanesLanes) * record_bytes;
  std::byte* out = slots.At(lanes.totals[0].row).record + first * record_bytes;
  // From element `at` of the block's on; those up to the next multiple of 32 of the lane's.
  const auto elements_from = [&](unsigned at) {
    const unsigned element = at % record_bytes;
    return bits[at / record_bytes * kPlanesWords + element / 32] >> (element % 32);
  };
  if (record_bytes % 4 == 0) {
    auto* const words = reinterpret_cast<std::uint32_t*>(out);
    for (unsigned word = threadIdx.x; word < bytes / 4; word += kPlanesThreads) {
      words[word] = BytesOfBits(elements_from(4 * word));
    }
  } else {
    for (unsigned at = threadIdx.x; at < bytes; at += kPlanesThreads) {
      out[at] = std::byte{(elements_from(at) & 1U) != 0};
    }
  }
}

}  // namespace tetrion
