#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/cuda/shard_slots.h"
#include "lib/replay/latent_rows.h"

// Latents between a replay and a batch: copies, no arithmetic.

namespace tetrion {

// As ShardSlots.
TETRION_HOST_DEVICE inline LatentSlots ShardLatents(const LatentSlots& first, std::uint32_t shard) {
  const std::uint64_t lanes = first.lanes, rows = first.capacity_rows;
  LatentSlots slots = first;
  slots.deter += shard * ShardColumnBytes(rows, lanes * first.spec.deter * 2) / 2;
  slots.stoch += shard * ShardColumnBytes(rows, lanes * first.spec.stoch);
  slots.valid += shard * ShardColumnBytes(rows, lanes);
  return slots;
}

// Copies `bytes`, a multiple of Word's, by threads `member` of `team`.
template <typename Word>
__device__ void CopyByTeam(void* to, const void* from, std::uint64_t bytes, std::uint32_t member,
                           std::uint32_t team) {
  for (std::uint64_t word = member; word < bytes / sizeof(Word); word += team) {
    static_cast<Word*>(to)[word] = static_cast<const Word*>(from)[word];
  }
}

// `team` threads a cell copy its latents: out of the replay, or, where kBack, into it. Of cells of
// one row and lane the last run's goes back, whole: threads keep no order.
template <typename Word, bool kBack>
__global__ void MoveLatents(LatentSlots first, GatherTile tile, std::uint32_t team,
                            LatentColumns batch) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread / team >= tile.cells()) return;
  const GatherCell cell = tile.Cell(static_cast<std::uint32_t>(thread / team));
  if (kBack && tile.IsInLaterRun(cell)) return;
  const auto member = static_cast<std::uint32_t>(thread % team);
  const LatentSlots slots = ShardLatents(first, cell.shard);
  const std::uint64_t at = cell.slot * slots.lanes + cell.lane;
  const std::uint32_t d = first.spec.deter, s = first.spec.stoch;
  std::uint16_t* const deter[] = {batch.deter + cell.out * d, slots.deter + at * d};
  std::uint8_t* const stoch[] = {batch.stoch + cell.out * s, slots.stoch + at * s};
  CopyByTeam<Word>(deter[kBack], deter[!kBack], std::uint64_t{d} * 2, member, team);
  CopyByTeam<Word>(stoch[kBack], stoch[!kBack], s, member, team);
  if (member != 0) return;
  if (kBack) {
    slots.valid[at] = 1;
  } else {
    batch.valid[cell.out] = slots.valid[at];
  }
}

}  // namespace tetrion
