#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/align.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/batch_lanes.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_block.h"
#include "lib/replay/row_columns.h"

namespace tetrion {

// The numbers of a replay's rows a second time, ordered by lane, beside HostRows: for windows of
// one lane. In a row every column is another line of memory, 6 or 7 of them beside the 23 of a
// record of 1440 bytes; here 16 rows of a lane share a line. Records and episode ids are not
// repeated, and windows of all lanes are not read here.
//
// The columns follow each other, each of the type of a gather's (RowColumns). Cells of one:
//
//   shard   0                                                        1 ...
//   block   rows 0..15                        rows 16..31 ...
//   lane    0          1          ...  M-1    0          1 ...
//   row     0 1 .. 15  0 1 .. 15  ...         16 .. 31
//
// Thread roles: the holder of a chunk writes, the holder of a lease reads; the gate keeps the two
// apart.
class HostLaneColumns {
 public:
  // Rows of a lane that lie side by side: one line of a column of 4 bytes.
  static constexpr std::uint64_t kBlockRows = 16;
  static_assert(kBlockRows * sizeof(float) == kColumnAlignBytes);

  // Allocates everything; throws Error(kTryAgain) when memory is not there.
  HostLaneColumns(const RowLayout& layout, int shards, std::uint64_t capacity_rows);

  std::uint64_t memory_bytes() const { return bytes_; }
  // The chunk's rows, which lie back to back at `src`.
  void Write(const Chunk& chunk, const std::byte* src);

  // Asks for the lines that hold the lane's numbers of a slot (row mod Tcap); those of the rows
  // behind it in its block lie there as well.
  void Prefetch(int shard, std::uint64_t slot, int lane) const;
  // Numbers of the first `rows` rows of the run, which has one lane, into its cells of `out`, whose
  // rows have `batch_lanes` lanes; columns left null aside.
  void Gather(const LaneRun& run, std::uint64_t rows, std::size_t batch_lanes,
              const RowColumns& out) const;
  std::uint32_t policy_version(int shard, std::uint64_t slot) const {
    return versions_[static_cast<std::uint64_t>(shard) * capacity_rows_ + slot];
  }

 private:
  std::size_t CellOf(int shard, std::uint64_t slot, int lane) const {
    const std::uint64_t block = static_cast<std::uint64_t>(shard) * blocks_ + slot / kBlockRows;
    return (block * layout_.spec.lanes + static_cast<std::uint64_t>(lane)) * kBlockRows +
           slot % kBlockRows;
  }

  const RowLayout layout_;  // of the rows that are written
  const std::uint64_t capacity_rows_;
  const std::uint64_t blocks_;  // of a shard: ceil(Tcap / 16)
  const std::size_t cells_;     // S * blocks * M * 16
  const std::size_t bytes_;
  const HostBlock memory_;
  RowColumns columns_;                 // in memory_, [S, blocks, M, 16] each; no record, no view
  std::uint32_t* versions_ = nullptr;  // in memory_, [S, Tcap] policy versions
};

}  // namespace tetrion
