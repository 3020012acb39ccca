#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/replay/batch_lanes.h"
#include "lib/replay/host_block.h"
#include "lib/replay/host_lane_columns.h"
#include "lib/replay/host_latents.h"
#include "lib/replay/rows.h"

namespace tetrion {

// ReplayRows in ordinary memory. Shard s, row t lies at (s * Tcap + t mod Tcap) * row_bytes of a
// HostBlock. Every call is done when it returns.
class HostRows final : public ReplayRows {
 public:
  // Allocates everything. Throws Error(kTryAgain) naming the bytes when memory is not there. Rows
  // whose windows will be of one lane each, `lane_windows`, keep their numbers by lane as well:
  // such windows are faster, rows a few bytes a lane larger.
  HostRows(const RowSpec& row, int shards, int capacity_rows,
           const std::optional<LatentSpec>& latents = {}, bool lane_windows = false);

  const RowLayout& layout() const override { return layout_; }
  std::uint64_t memory_bytes() const override;
  const Event* Write(const Chunk& chunk, const std::byte* src) override;
  // Memory of a row: for the holder of its chunk, who fills it in place, or of a lease, who reads.
  // In place only without latents and numbers by lane: they would be those of the slot's last row.
  std::byte* Row(int shard, std::uint64_t row) const;

  void Gather(const ReadLease& lease, int first_lane, int lanes,
              const RowColumns& out) const override;
  void GatherVersions(const ReadLease& lease, std::uint32_t* out) const override;

  void GatherLatents(const ReadLease& lease, const BatchPart& part,
                     const LatentColumns& out) const override;
  void ScatterLatents(const ReadLease& lease, const BatchPart& part,
                      const LatentColumns& in) override;

  // For tests and debugging: nullptr, or what is wrong with committed rows [from, to): episode_id
  // and is_first move together, cont is 0 or 1, is_last precedes is_first.
  const char* CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const;

 private:
  std::uint64_t RowBytes() const;  // of all rows, latents aside
  // Memory of the row in a slot (row mod Tcap).
  std::byte* Slot(int shard, std::uint64_t slot) const {
    return memory_.data() +
           (static_cast<std::uint64_t>(shard) * capacity_rows_ + slot) * layout_.row_bytes;
  }
  // Whether the window's numbers are read where they lie by lane.
  bool IsByLane(const Window& window) const { return lane_columns_ && window.lane >= 0; }
  // Asks for what Copy will read of the row.
  void Prefetch(const RunRows& at) const;
  // The run's lanes of the row into the columns, whose rows have `batch_lanes` lanes.
  void Copy(const RunRows& at, std::size_t batch_lanes, const RowColumns& out) const;
  std::uint32_t PolicyVersion(const Window& window, std::uint64_t slot) const;

  const RowLayout layout_;
  const int shards_;
  const std::uint64_t capacity_rows_;
  const HostBlock memory_;  // [S, Tcap, row_bytes]
  std::optional<HostLaneColumns> lane_columns_;
  std::optional<HostLatents> latents_;
};

}  // namespace tetrion
