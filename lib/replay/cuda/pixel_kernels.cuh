#pragma once

#include <bit>
#include <cstdint>

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

// float(shade) / 3.0F, rounded to bf16: shade s in bits 16 s and on.
constexpr std::uint64_t Bf16Shades() {
  std::uint64_t shades = 0;
  for (std::uint32_t shade = 0; shade < 4; ++shade) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(shade) / 3.0F);
    shades |= std::uint64_t{(bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16} << (16 * shade);
  }
  return shades;
}
inline constexpr std::uint64_t kBf16Shades = Bf16Shades();

TETRION_HOST_DEVICE inline void SetPixel(std::uint32_t shade, float& pixel) {
  pixel = static_cast<float>(shade) * (1.0F / 3);  // the quotient, exactly, for these four
}
TETRION_HOST_DEVICE inline void SetPixel(std::uint32_t shade, std::uint16_t& bf16) {
  bf16 = static_cast<std::uint16_t>(kBf16Shades >> (16 * shade));
}

template <typename Pixel>
TETRION_HOST_DEVICE PixelQuad<Pixel> QuadOf(std::uint32_t byte) {
  PixelQuad<Pixel> quad;
  for (std::uint32_t k = 0; k < 4; ++k) SetPixel(byte >> (2 * k) & 3U, quad.pixel[k]);
  return quad;
}

inline constexpr std::uint32_t kPixelThreads = 96;  // of a block, which unpacks one picture
inline constexpr std::uint32_t kPictureBytes = 1440;
static_assert(kPictureBytes % kPixelThreads == 0);

// A block a cell reads its record in the ring and writes its pixels, neighbours beside each other.
template <typename Pixel>
__global__ void GatherPixels(RowSlots first, GatherTile tile, PixelQuad<Pixel>* out) {
  const GatherCell cell = tile.Cell(blockIdx.x);
  const RowSlots slots = ShardSlots(first, cell.shard);
  const std::byte* const record =
      slots.record + (cell.slot * slots.lanes + cell.lane) * kPictureBytes + threadIdx.x;
  PixelQuad<Pixel>* const pixels = out + cell.out * kPictureBytes + threadIdx.x;
  constexpr std::uint32_t kSteps = kPictureBytes / kPixelThreads;
  std::byte bytes[kSteps];
  TETRION_UNROLL
  for (std::uint32_t k = 0; k < kSteps; ++k) bytes[k] = record[k * kPixelThreads];
  TETRION_UNROLL
  for (std::uint32_t k = 0; k < kSteps; ++k) {
    pixels[k * kPixelThreads] = QuadOf<Pixel>(static_cast<std::uint32_t>(bytes[k]));
  }
}

inline constexpr std::uint32_t kLookUps = 4;  // of a thread

// The pixels of bytes, out of the table [256]: a block has kLookUps bytes a thread.
template <typename Pixel>
__global__ void LookUpPixels(cuda::DeviceSpan<const std::uint8_t> bytes,
                             cuda::DeviceSpan<const PixelQuad<Pixel>> table,
                             PixelQuad<Pixel>* out) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x * kLookUps + threadIdx.x;
  std::uint8_t held[kLookUps];
  TETRION_UNROLL
  for (std::uint32_t k = 0; k < kLookUps; ++k) {
    const std::uint64_t at = first + std::uint64_t{k} * blockDim.x;
    if (at < bytes.size()) held[k] = bytes[at];
  }
  TETRION_UNROLL
  for (std::uint32_t k = 0; k < kLookUps; ++k) {
    const std::uint64_t at = first + std::uint64_t{k} * blockDim.x;
    if (at < bytes.size()) out[at] = table[held[k]];
  }
}

}  // namespace tetrion
