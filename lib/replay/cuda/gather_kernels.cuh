#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/cuda/kernel.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/row_slots.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/cuda/shard_slots.h"
#include "lib/replay/device_columns.h"

// Rows of windows out of a replay in device memory: copies, no arithmetic.

namespace tetrion {

// All columns but the record of one cell, of a batch of so many rows.
__device__ inline void GatherFields(const RowSlots& slots, std::uint32_t rows,
                                    const GatherCell& cell, const DeviceColumns& out) {
  const std::uint64_t from = cell.slot * slots.lanes + cell.lane;
  if (out.action != nullptr) out.action[cell.out] = slots.action[from];
  if (out.log_prob != nullptr) out.log_prob[cell.out] = slots.log_prob[from];
  if (out.mask != nullptr) out.mask[cell.out] = slots.mask[from];
  if (out.reward != nullptr) out.reward[cell.out] = slots.reward[from];
  if (out.cont != nullptr) out.cont[cell.out] = slots.cont[from];
  if (out.episode_id != nullptr) out.episode_id[cell.out] = slots.episode_id[from];
  if (out.flags == nullptr) return;
  std::uint8_t flags = slots.flags[from];
  if (cell.row + 1 < rows) {
    const std::uint64_t next = cell.slot + 1 < slots.capacity_rows ? cell.slot + 1 : 0;
    // A lane that begins anew had its episode cut.
    const bool cut = (slots.flags[next * slots.lanes + cell.lane] & kIsFirst) != 0;
    if (cut) flags |= kIsLast;
  }
  out.flags[cell.out] = flags;
}

// The grid's first `record_blocks` blocks copy records of `words` words of type Word, a team of
// `team` threads each; `team` divides the block. In the blocks behind them a thread copies all else
// of a cell. So both kinds of threads have neighbours that do the same.
template <typename Word, typename Tile>
__global__ void GatherCells(RowSlots first, Tile tile, std::uint32_t words, std::uint32_t team,
                            std::uint32_t record_blocks, DeviceColumns out) {
  const bool copies_records = blockIdx.x < record_blocks;
  const std::uint32_t index = copies_records
                                  ? blockIdx.x * (blockDim.x / team) + threadIdx.x / team
                                  : (blockIdx.x - record_blocks) * blockDim.x + threadIdx.x;
  if (index >= tile.cells()) return;
  const GatherCell cell = tile.Cell(index);
  const RowSlots slots = ShardSlots(first, cell.shard);
  if (!copies_records) {
    GatherFields(slots, tile.rows, cell, out);
    return;
  }
  const std::uint64_t from = cell.slot * slots.lanes + cell.lane;
  const Word* const source = reinterpret_cast<const Word*>(slots.record) + from * words;
  Word* const record = reinterpret_cast<Word*>(out.record) + cell.out * words;
  constexpr std::uint32_t kInFlight = 4;  // loads of a thread that do not wait for each other
  for (std::uint32_t word = threadIdx.x % team; word < words; word += kInFlight * team) {
    Word held[kInFlight];
    TETRION_UNROLL
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      if (word + k * team < words) held[k] = source[word + k * team];
    }
    TETRION_UNROLL
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      if (word + k * team < words) record[word + k * team] = held[k];
    }
  }
}

// One thread a row of a window: out[R, windows] = the row's policy version. The tile is of whole
// windows, one a run.
__global__ void GatherRowVersions(RowSlots first, GatherTile tile, std::uint32_t windows,
                                  std::uint32_t* out) {
  const std::uint64_t index = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto row = static_cast<std::uint32_t>(index / tile.runs);
  const auto run = static_cast<std::uint32_t>(index % tile.runs);
  if (row >= tile.rows) return;
  const RowSlots slots = ShardSlots(first, tile.run[run].shard);
  out[std::uint64_t{row} * windows + tile.first_run + run] =
      slots.header[tile.SlotOf(tile.run[run], row)].policy_version;
}

}  // namespace tetrion
