#pragma once

#include "lib/cuda/kernel.h"
#include "lib/envs/views/packed2_pixels.h"
#include "lib/envs/views/planes_bits.h"
#include "lib/frame/row_slots.h"

// Views of one row of device memory, as ObsSpec::expand makes them of records in host memory.
//
// Numeric policy: copies, and elements that are 0 or 1; equal to the CPU's bit for bit.

namespace tetrion {

inline constexpr unsigned kViewThreads = 128;
inline constexpr unsigned kViewLanes = 16;  // of a block, where it makes bits first

// `planes`: a thread makes the bits of a lane, the block spreads them. out [M, floats].
__global__ void PlanesOfRow(RowSlots slots, const std::uint64_t* row, int queue_size,
                            unsigned floats, cuda::DeviceSpan<float> out) {
  TETRION_SHARED(std::uint32_t, bits, kViewLanes* kPlanesWords);
  const unsigned first_lane = blockIdx.x * kViewLanes;
  const unsigned lane = first_lane + threadIdx.x;
  if (threadIdx.x < kViewLanes && lane < slots.lanes) {
    const std::byte* record = slots.At(*row).record + std::size_t{lane} * slots.record_bytes;
    const auto words = bits.Part(threadIdx.x * kPlanesWords, kPlanesWords);
    MakePlanesBits(*reinterpret_cast<const TetrisRecord*>(record), queue_size, words);
  }
  __syncthreads();
  for (unsigned l = 0; l < kViewLanes && first_lane + l < slots.lanes; ++l) {
    for (unsigned i = threadIdx.x; i < floats; i += kViewThreads) {
      const std::uint32_t word = bits[l * kPlanesWords + i / 32];
      out[std::size_t{first_lane + l} * floats + i] = static_cast<float>(word >> (i % 32) & 1U);
    }
  }
}

// Views that are the record's floats themselves. out [M, floats].
__global__ void FloatsOfRow(RowSlots slots, const std::uint64_t* row, unsigned floats,
                            cuda::DeviceSpan<float> out) {
  const std::size_t cell = std::size_t{blockIdx.x} * kViewThreads + threadIdx.x;
  if (cell >= out.size()) return;
  const std::byte* record = slots.At(*row).record + cell / floats * slots.record_bytes;
  out[cell] = reinterpret_cast<const float*>(record)[cell % floats];
}

// `planes` of records that hold them as bytes. out [M, record_bytes].
__global__ void BytesOfRow(RowSlots slots, const std::uint64_t* row, cuda::DeviceSpan<float> out) {
  const std::size_t cell = std::size_t{blockIdx.x} * kViewThreads + threadIdx.x;
  if (cell < out.size()) out[cell] = static_cast<float>(slots.At(*row).record[cell]);
}

// The shades of pictures, a thread a byte of four. out [M, 4 * record_bytes].
__global__ void ShadesOfRow(RowSlots slots, const std::uint64_t* row, cuda::DeviceSpan<float> out) {
  const std::size_t at = std::size_t{blockIdx.x} * kViewThreads + threadIdx.x;
  if (4 * at >= out.size()) return;
  const auto byte = static_cast<unsigned>(slots.At(*row).record[at]);
  for (unsigned pixel = 0; pixel < 4; ++pixel) {
    out[4 * at + pixel] = Packed2Shade(byte >> (2 * pixel));
  }
}

}  // namespace tetrion
