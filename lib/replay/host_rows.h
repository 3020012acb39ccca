#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/replay/rows.h"

namespace tetrion {

// ReplayRows in ordinary memory. Shard s, row t lies at (s * Tcap + t mod Tcap) * row_bytes; the
// base is 256-byte aligned and never moves; from 2 MiB on huge pages are asked for. Every call is
// done when it returns.
class HostRows final : public ReplayRows {
 public:
  // Allocates everything. Throws Error(kTryAgain) naming the bytes when memory is not there.
  HostRows(const RowSpec& row, int shards, int capacity_rows);
  ~HostRows() override;
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  const RowLayout& layout() const override { return layout_; }
  std::uint64_t memory_bytes() const override;
  const Event* Write(const Chunk& chunk, const std::byte* src) override;
  // Memory of a row: for the holder of its chunk, who fills it in place, or of a lease, who reads.
  std::byte* Row(int shard, std::uint64_t row) const;

  void Gather(const ReadLease& lease, int first_lane, int lanes,
              const RowColumns& out) const override;
  void GatherVersions(const ReadLease& lease, std::uint32_t* out) const override;

  // For tests and debugging: nullptr, or what is wrong with committed rows [from, to): episode_id
  // and is_first move together, cont is 0 or 1, is_last precedes is_first.
  const char* CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const;

 private:
  // Lanes [lane, lane + lanes) of one row into cells [cell, cell + lanes) of the columns.
  void CopyLanes(const std::byte* row, std::size_t lane, std::size_t lanes, std::size_t cell,
                 const RowColumns& out) const;

  const RowLayout layout_;
  const int shards_;
  const std::uint64_t capacity_rows_;
  std::byte* const memory_;  // [S, Tcap, row_bytes], owned
};

}  // namespace tetrion
