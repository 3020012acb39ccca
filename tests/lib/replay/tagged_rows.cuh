#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"
#include "lib/frame/row_slots.h"

namespace tetrion::testing {

// What byte `at` of a record says: its row, lane and place.
TETRION_HOST_DEVICE constexpr std::uint8_t TagByte(std::int32_t tag, std::uint32_t at) {
  return static_cast<std::uint8_t>(static_cast<std::uint32_t>(tag) * 37 + at * 11 + (at >> 6));
}

// Fills rows [first, first + rows) where they lie, one thread a cell, as an environment does. A
// cell's tag is base + row * 10 + lane; every column says it.
static __global__ void WriteTaggedRows(RowSlots slots, std::uint64_t first, std::uint32_t rows,
                                       std::int32_t base) {
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= rows * slots.lanes) return;
  const std::uint64_t row = first + index / slots.lanes;
  const std::uint32_t lane = index % slots.lanes;
  const RowView view = slots.At(row);
  const auto tag = base + static_cast<std::int32_t>(row) * 10 + static_cast<std::int32_t>(lane);
  if (lane == 0) *view.header = {row, static_cast<std::uint32_t>(tag), 0};
  for (std::uint32_t at = 0; at < slots.record_bytes; ++at) {
    view.record[lane * slots.record_bytes + at] = static_cast<std::byte>(TagByte(tag, at));
  }
  view.action[lane] = tag;
  view.log_prob[lane] = static_cast<float>(-tag);
  if (view.mask != nullptr) view.mask[lane] = static_cast<std::uint64_t>(tag) << 40;
  view.reward[lane] = static_cast<float>(tag) * 0.5F;
  view.flags[lane] = 0;
  view.cont[lane] = 1.0F;
  view.episode_id[lane] = tag;
}

}  // namespace tetrion::testing
