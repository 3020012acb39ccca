#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/frame/row_slots.h"

// Where a column of each shard lies: S shards behind each other, every one 256-byte aligned.

namespace tetrion {

// Bytes from a shard's column to the next shard's, for rows of `row_bytes` in that column.
TETRION_HOST_DEVICE constexpr std::uint64_t ShardColumnBytes(std::uint64_t capacity_rows,
                                                             std::uint64_t row_bytes) {
  constexpr std::uint64_t kAlignBytes = 256;
  return (capacity_rows * row_bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

// Shard `shard` of a memory whose shard 0 is `first`.
TETRION_HOST_DEVICE inline RowSlots ShardSlots(const RowSlots& first, std::uint32_t shard) {
  const auto move = [&](auto* column, std::uint64_t values) {
    const std::uint64_t bytes =
        shard * ShardColumnBytes(first.capacity_rows, values * sizeof(*column));
    return column == nullptr ? nullptr : column + bytes / sizeof(*column);
  };
  RowSlots slots = first;
  slots.header = move(first.header, 1);
  slots.record = move(first.record, std::uint64_t{first.lanes} * first.record_bytes);
  slots.action = move(first.action, first.lanes);
  slots.log_prob = move(first.log_prob, first.lanes);
  slots.mask = move(first.mask, first.lanes);
  slots.reward = move(first.reward, first.lanes);
  slots.flags = move(first.flags, first.lanes);
  slots.cont = move(first.cont, first.lanes);
  slots.episode_id = move(first.episode_id, first.lanes);
  return slots;
}

}  // namespace tetrion
