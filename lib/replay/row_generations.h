#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lib/core/check.h"
#include "lib/replay/batch_lanes.h"
#include "lib/replay/gate.h"
#include "lib/replay/lease.h"

namespace tetrion {

// Which row lies in each slot of the rings: a write-back asserts with it that its rows are still
// there. Under a lease they always are; without one, latents of a dead row would get under the row
// that took its slot, and no number would look wrong.
//
// Thread roles: the holder of a chunk writes, the holder of a lease asks.
class RowGenerations {
 public:
  RowGenerations(int shards, std::uint64_t capacity_rows)
      : capacity_rows_(capacity_rows),
        row_in_(static_cast<std::uint64_t>(shards) * capacity_rows) {}

  // The chunk's rows take their slots.
  void Write(const Chunk& chunk) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(chunk.rows); ++i) {
      row_in_[SlotOf(chunk.shard, chunk.first + i)].store(chunk.first + i,
                                                          std::memory_order_relaxed);
    }
  }
  // CHECKs that the part's rows, of all windows, lie in their slots.
  void CheckThere(const ReadLease& lease, const BatchPart& part) const {
    for (const Window& window : lease.windows()) {
      const std::uint64_t first = window.start + static_cast<std::uint64_t>(part.first_row);
      for (std::uint64_t row = first; row < first + static_cast<std::uint64_t>(part.rows); ++row) {
        TETRION_CHECK(row_in_[SlotOf(window.shard, row)].load(std::memory_order_relaxed) == row,
                      "latents for a row that another has replaced: the lease does not hold it");
      }
    }
  }

 private:
  std::size_t SlotOf(int shard, std::uint64_t row) const {
    return static_cast<std::size_t>(shard) * capacity_rows_ + row % capacity_rows_;
  }

  const std::uint64_t capacity_rows_;
  std::vector<std::atomic<std::uint64_t>> row_in_;  // [S, Tcap]
};

}  // namespace tetrion
