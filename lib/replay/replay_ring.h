#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/frame/row_batch.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/selector.h"

namespace tetrion {

struct ReplayConfig {
  RowSpec row;
  int shards = 1;         // S slots, one per worker
  int capacity_rows = 0;  // Tcap of a shard; commit_stride divides it
  int commit_stride = 8;
  int safety_margin_rows = 0;  // rows below the committed head that sampling leaves alone
};

enum class [[nodiscard]] PushResult {
  kPushed,   // all rows are in the ring
  kLimited,  // the selector wants the trainer to catch up first
  kLeased,   // a reader still holds rows that would be overwritten
};

// Counters of one shard at one moment.
struct ShardStats {
  std::uint64_t written_rows = 0;
  std::uint64_t committed_rows = 0;
  std::uint64_t valid_rows = 0;  // committed and not overwritten
};

class ReadLease;

// The replay: S equal shards [Tcap, M, ...] of rows, allocated once; a ring in host memory and one
// in CUDA memory share this interface and its tests.
//
// Thread roles: one writer thread (ingest) pushes; one reader thread (trainer) opens leases;
// counters may be read from anywhere.
//
// The gate (commit-gated sampling, replay layout in lib/frame/row_layout.h):
//  1. Readers see committed rows only; a commit happens every commit_stride rows or at Flush.
//  2. A chunk's slots are written only when no open lease reaches into the rows that die with it.
//  3. Opening a lease and giving up rows exclude each other (one mutex), so a lease taken later
//     never contains dead rows.
class ReplayRing {
 public:
  virtual ~ReplayRing() = default;

  virtual const RowLayout& layout() const = 0;
  virtual int shards() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  // --- writer thread ---
  // A new worker ring feeds the shard from its next row on: commits what the old one left; its
  // undelivered windows no longer count.
  virtual void BeginGeneration(int shard) = 0;
  // Copies `rows` rows lying back to back into the shard, committing every full chunk. Takes as
  // many as it may and says in `pushed` how many; waits at most `timeout_ns` for limiter or leases.
  virtual PushResult PushRows(int shard, const std::byte* rows, int count, std::int64_t timeout_ns,
                              int& pushed) = 0;
  // Memory of row `row`'s observations, [M, record_bytes] u8, for writers that fill the ring in
  // place. CHECKs that the row lies in the uncommitted, reclaimed chunk.
  virtual std::byte* ObsSlot(int shard, std::uint64_t row) = 0;
  // Commits a partial chunk: at drain, when a ring ends.
  virtual void Flush(int shard) = 0;

  // --- reader thread ---
  // Draws `count` windows of `rows` rows and leases them; waits at most `timeout_ns` until the
  // selector is ready. The lease is empty (`!lease`) when it was not.
  virtual ReadLease OpenLease(int count, int rows, std::int64_t timeout_ns) = 0;
  // Copies the leased windows into the batch (T+1 = the lease's rows) and marks cut episodes.
  virtual void Gather(const ReadLease& lease, RowBatch& batch) const = 0;

  // --- any thread ---
  virtual ShardStats Stats(int shard) const = 0;
  // Windows of all shards that were overwritten before the reader got them, since the start.
  virtual std::int64_t overwritten_windows() const = 0;
  // For tests and debugging: nullptr, or what is wrong with committed rows [from, to): episode_id
  // and is_first move together, cont is 0 or 1, is_last precedes is_first.
  virtual const char* CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const = 0;

 private:
  friend class ReadLease;
  virtual void CloseLease(int entry) = 0;
};

// Keeps leased rows from being overwritten until it is closed or destroyed. Move-only; reader
// thread. Must not outlive its ring.
class ReadLease {
 public:
  ReadLease() = default;
  ReadLease(ReplayRing* ring, int entry, std::vector<Window> windows, int rows)
      : ring_(ring), entry_(entry), windows_(std::move(windows)), rows_(rows) {}
  ReadLease(ReadLease&& other) noexcept { *this = std::move(other); }
  ReadLease& operator=(ReadLease&& other) noexcept {
    if (this != &other) {
      Close();
      ring_ = std::exchange(other.ring_, nullptr);
      entry_ = other.entry_;
      windows_ = std::move(other.windows_);
      rows_ = other.rows_;
    }
    return *this;
  }
  ~ReadLease() { Close(); }

  explicit operator bool() const { return ring_ != nullptr; }
  const std::vector<Window>& windows() const { return windows_; }
  int rows() const { return rows_; }
  // Lets the writer have the rows back. May be called twice.
  void Close() {
    if (ReplayRing* ring = std::exchange(ring_, nullptr)) ring->CloseLease(entry_);
  }

 private:
  ReplayRing* ring_ = nullptr;
  int entry_ = 0;
  std::vector<Window> windows_;
  int rows_ = 0;
};

}  // namespace tetrion
