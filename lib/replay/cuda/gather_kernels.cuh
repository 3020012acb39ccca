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

// All columns but the record of one cell.
__device__ inline void GatherFields(const RowSlots& slots, const GatherTile& tile,
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
  if (cell.row + 1 < tile.rows) {
    const std::uint64_t next = cell.slot + 1 < slots.capacity_rows ? cell.slot + 1 : 0;
    // A lane that begins anew had its episode cut.
    const bool cut = (slots.flags[next * slots.lanes + cell.lane] & kIsFirst) != 0;
    if (cut) flags |= kIsLast;
  }
  out.flags[cell.out] = flags;
}

// `team` threads a cell copy its record, `words` words of type Word; the first of them the rest.
// The grid has a team for every cell of the tile.
template <typename Word>
__global__ void GatherCells(RowSlots first, GatherTile tile, std::uint32_t words,
                            std::uint32_t team, DeviceColumns out) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t index = thread / team;
  if (index >= tile.cells()) return;
  const GatherCell cell = tile.Cell(index);
  const RowSlots slots = ShardSlots(first, cell.shard);
  const auto member = static_cast<std::uint32_t>(thread % team);
  const std::uint64_t from = cell.slot * slots.lanes + cell.lane;
  const Word* const source = reinterpret_cast<const Word*>(slots.record) + from * words;
  Word* const record = reinterpret_cast<Word*>(out.record) + cell.out * words;
  for (std::uint32_t word = member; word < words; word += team) record[word] = source[word];
  if (member == 0) GatherFields(slots, tile, cell, out);
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
