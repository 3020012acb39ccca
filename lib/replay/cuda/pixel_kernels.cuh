#pragma once

#include <cstdint>
#include <cstring>

#include "lib/cuda/kernel.h"
#include "lib/frame/row_slots.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/cuda/shard_slots.h"

// Pictures of two bits a pixel, four pixels a byte, the leftmost in the lowest bits, as pixels.
// Numeric policy: a pixel is float(shade) / 3.0F, rounded to the nearest bf16, ties to even, where
// that is asked for; host and device do the same, so that tables and kernels agree bit by bit.

namespace tetrion {

// The four pixels of a byte, written at once.
template <typename Pixel>
struct alignas(4 * sizeof(Pixel)) PixelQuad {
  Pixel pixel[4];
};

TETRION_HOST_DEVICE inline void SetPixel(std::uint32_t shade, float& pixel) {
  pixel = static_cast<float>(shade) / 3.0F;
}
TETRION_HOST_DEVICE inline void SetPixel(std::uint32_t shade, std::uint16_t& bf16) {
  float pixel = 0;
  SetPixel(shade, pixel);
  std::uint32_t bits = 0;
  memcpy(&bits, &pixel, sizeof bits);
  bf16 = static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

template <typename Pixel>
TETRION_HOST_DEVICE PixelQuad<Pixel> QuadOf(std::uint32_t byte) {
  PixelQuad<Pixel> quad;
  for (std::uint32_t k = 0; k < 4; ++k) SetPixel(byte >> (2 * k) & 3U, quad.pixel[k]);
  return quad;
}

// `team` threads a cell read its record in the ring and write its pixels, neighbours beside each
// other. The grid has a team for every cell of the tile.
template <typename Pixel>
__global__ void GatherPixels(RowSlots first, GatherTile tile, std::uint32_t team,
                             PixelQuad<Pixel>* out) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread / team >= tile.cells()) return;
  const GatherCell cell = tile.Cell(thread / team);
  const RowSlots slots = ShardSlots(first, cell.shard);
  const std::byte* const record =
      slots.record + (cell.slot * slots.lanes + cell.lane) * slots.record_bytes;
  PixelQuad<Pixel>* const pixels = out + cell.out * slots.record_bytes;
  for (auto at = static_cast<std::uint32_t>(thread % team); at < slots.record_bytes; at += team) {
    pixels[at] = QuadOf<Pixel>(static_cast<std::uint32_t>(record[at]));
  }
}

// One thread a byte: its pixels out of the table [256].
template <typename Pixel>
__global__ void LookUpPixels(cuda::DeviceSpan<const std::uint8_t> bytes,
                             cuda::DeviceSpan<const PixelQuad<Pixel>> table,
                             PixelQuad<Pixel>* out) {
  const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < bytes.size()) out[at] = table[bytes[at]];
}

}  // namespace tetrion
