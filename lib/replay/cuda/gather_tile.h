#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/core/check.h"
#include "lib/core/host_device.h"
#include "lib/replay/batch_lanes.h"
#include "lib/replay/lease.h"

namespace tetrion {

// A cell of a gather: where it lies in its shard and where it goes.
struct GatherCell {
  std::uint64_t slot;  // row of the shard's column
  std::uint32_t shard, lane, row;
  std::uint64_t out;  // cell of the caller's columns
  std::uint32_t run;  // of the tile
};

// Cells from `cell` to the next run's are the lanes from `lane` on of rows from `slot` on.
struct GatherRun {
  std::uint32_t shard, slot, lane, cell;
};

// A part of a gather that fits into a kernel's arguments, so that windows reach a device without a
// copy: consecutive runs of lanes, all their rows; at most kRuns runs.
template <std::uint32_t kRuns>
struct GatherTileOf {
  static constexpr std::uint32_t kMostRuns = kRuns;

  std::uint32_t capacity_rows = 0;  // Tcap
  std::uint32_t rows = 0;           // R
  std::uint32_t lanes = 0;          // b, of the whole gather
  std::uint32_t runs = 0;           // in this tile
  std::uint32_t first_run = 0;      // of the gather, that is the tile's first
  std::uint32_t end_cell = 0;       // behind the last run's
  GatherRun run[kMostRuns] = {};

  TETRION_HOST_DEVICE std::uint32_t width() const { return end_cell - run[0].cell; }
  TETRION_HOST_DEVICE std::uint32_t cells() const { return rows * width(); }
  TETRION_HOST_DEVICE std::uint64_t SlotOf(const GatherRun& of, std::uint32_t row) const {
    const std::uint64_t slot = std::uint64_t{of.slot} + row;
    return slot < capacity_rows ? slot : slot - capacity_rows;
  }
  // Number `index` of cells(), row by row.
  TETRION_HOST_DEVICE GatherCell Cell(std::uint32_t index) const {
    const std::uint32_t row = index / width(), cell = run[0].cell + index % width();
    std::uint32_t low = 0, high = runs;  // the run is in [low, high)
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (run[middle].cell <= cell ? low : high) = middle;
    }
    const GatherRun& of = run[low];
    return {.slot = SlotOf(of, row),
            .shard = of.shard,
            .lane = of.lane + cell - of.cell,
            .row = row,
            .out = std::uint64_t{row} * lanes + cell,
            .run = low};
  }
  // Whether a later run of the tile has the cell's row and lane, too.
  TETRION_HOST_DEVICE bool IsInLaterRun(const GatherCell& cell) const {
    for (std::uint32_t r = cell.run + 1; r < runs; ++r) {
      const GatherRun& of = run[r];
      const std::uint32_t end = r + 1 < runs ? run[r + 1].cell : end_cell;
      const std::uint64_t ahead = cell.slot + (cell.slot < of.slot ? capacity_rows : 0) - of.slot;
      if (of.shard == cell.shard && ahead < rows && cell.lane >= of.lane &&
          cell.lane < of.lane + (end - of.cell)) {
        return true;
      }
    }
    return false;
  }
  // The same with room for fewer runs; there are no more.
  template <std::uint32_t kFewer>
  GatherTileOf<kFewer> WithRoomFor() const {
    GatherTileOf<kFewer> tile = {.capacity_rows = capacity_rows,
                                 .rows = rows,
                                 .lanes = lanes,
                                 .runs = runs,
                                 .first_run = first_run,
                                 .end_cell = end_cell};
    std::copy_n(run, runs, tile.run);
    return tile;
  }
};
// Many runs, since every further launch waits for the last blocks of the one before.
using GatherTile = GatherTileOf<512>;
// 500 bytes of arguments instead of 8 KiB, which cost a launch 4 us.
using SmallGatherTile = GatherTileOf<32>;

// Calls visit(const GatherTile&) for each tile of a part of the lease's batch. CHECKs that the
// batch has it, and that its cells can be counted in 32 bits.
template <typename Visit>
void ForEachGatherTile(const ReadLease& lease, int lanes_of_a_row, std::uint64_t capacity_rows,
                       const BatchPart& part, const Visit& visit) {
  TETRION_CHECK(part.first_row >= 0 && part.first_row + part.rows <= lease.rows(),
                "the batch has fewer rows");
  TETRION_CHECK(std::uint64_t(part.rows) * std::uint64_t(part.lanes) < std::uint64_t{1} << 32,
                "a batch has less than 2^32 cells");
  GatherTile tile;
  tile.capacity_rows = static_cast<std::uint32_t>(capacity_rows);
  tile.rows = static_cast<std::uint32_t>(part.rows);
  tile.lanes = static_cast<std::uint32_t>(part.lanes);
  const auto first_row = static_cast<std::uint64_t>(part.first_row);
  ForEachLaneRun(lease, lanes_of_a_row, part.first_lane, part.lanes, [&](const LaneRun& run) {
    if (tile.runs == GatherTile::kMostRuns) {
      visit(static_cast<const GatherTile&>(tile));
      tile.first_run += tile.runs;
      tile.runs = 0;
    }
    tile.run[tile.runs++] = {
        .shard = static_cast<std::uint32_t>(run.window.shard),
        .slot = static_cast<std::uint32_t>((run.window.start + first_row) % capacity_rows),
        .lane = static_cast<std::uint32_t>(run.lane),
        .cell = static_cast<std::uint32_t>(run.cell)};
    tile.end_cell = static_cast<std::uint32_t>(run.cell + run.lanes);
  });
  if (tile.runs > 0 && tile.rows > 0) visit(static_cast<const GatherTile&>(tile));
}

}  // namespace tetrion
