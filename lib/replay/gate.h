#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/replay/commit_manager.h"
#include "lib/replay/lease.h"
#include "lib/replay/limiter.h"
#include "lib/replay/selectors/selector.h"

namespace tetrion {

struct GateConfig {
  int shards = 1;         // S slots, one per worker
  int capacity_rows = 0;  // Tcap of a shard; commit_stride divides it
  int commit_stride = 8;
  int safety_margin_rows = 0;  // rows below the committed head that sampling leaves alone
};

enum class [[nodiscard]] AcquireResult {
  kAcquired,
  kLimited,  // the limiter wants the reader to catch up first
  kLeased,   // a reader still holds rows that would be overwritten
};

// Rows [first, first + rows) of a shard whose slots the writer may fill; they never wrap. A plain
// value: a chunk that is not committed is given out again.
struct [[nodiscard]] Chunk {
  AcquireResult result = AcquireResult::kLimited;
  int shard = 0;
  std::uint64_t first = 0;
  int rows = 0;
  explicit operator bool() const { return result == AcquireResult::kAcquired; }
};

// Counters of one shard at one moment.
struct ShardStats {
  std::uint64_t written_rows = 0;
  std::uint64_t committed_rows = 0;
  std::uint64_t valid_rows = 0;  // committed and not overwritten
};

// The protocol of the replay: who may write and who may read which rows of S equal shards, and
// when. Touches no row; the memory is another object (rows.h), on the host or on a device.
//
// Thread roles: one writer thread (ingest) acquires and commits; one reader thread (trainer) opens
// leases; counters may be read from anywhere.
//
// Invariants
//  1. Readers see committed rows only; a commit happens every commit_stride rows or at Flush.
//  2. A chunk's slots are written only when no lease reaches into the rows that die with it.
//  3. Opening a lease and giving up rows exclude each other (one mutex), so a lease taken later
//     never contains dead rows.
//
// Ordering, where work goes on by itself: a lease fences the reader behind the events that its
// rows were committed with; a chunk fences the writer behind the events that end the leases of the
// rows it destroys. Neither thread waits for the other's work, only for an open lease's close.
class ReplayGate {
 public:
  ReplayGate(const GateConfig& config, std::unique_ptr<Selector> selector, const Limiter& limiter);
  // CHECKs that every lease is closed.
  ~ReplayGate();

  int shards() const { return config_.shards; }

  // --- writer thread ---
  // A new worker's ring feeds the shard from its next row on: commits what the old one left.
  void BeginGeneration(int shard) TETRION_EXCLUDES(mu_);
  // The next rows of the shard, at most `most` and at most to the end of the commit stride. Waits
  // at most `timeout_ns` for limiter and leases; `result` says what it waited for in vain.
  Chunk Acquire(int shard, int most, std::int64_t timeout_ns) TETRION_EXCLUDES(mu_);
  // The chunk's rows are in memory: now, or once `written`, recorded behind the copies, has passed.
  // Readers see them when the stride is full. CHECKs that it is the last chunk acquired.
  void Commit(const Chunk& chunk, const Event* written = nullptr) TETRION_EXCLUDES(mu_);
  // Makes a partial stride visible: at drain, when a ring ends.
  void Flush(int shard) TETRION_EXCLUDES(mu_);

  // --- reader thread ---
  // Draws `count` windows of `rows` rows and leases them; waits at most `timeout_ns` until limiter
  // and selector are ready. The lease is empty (`!lease`) when they were not.
  ReadLease OpenLease(int count, int rows, std::int64_t timeout_ns) TETRION_EXCLUDES(mu_);

  // --- any thread ---
  // From now on the limiter holds the writer up no more; the reader as before.
  void LetWriterRun() TETRION_EXCLUDES(mu_);
  ShardStats Stats(int shard) const TETRION_EXCLUDES(mu_);
  // Whether the limiter would let the reader draw `count` windows now.
  bool MaySample(int count) const TETRION_EXCLUDES(mu_);
  // Windows of all shards that were overwritten before the reader got them, since the start.
  std::int64_t overwritten_windows() const TETRION_EXCLUDES(mu_);

 private:
  friend class ReadLease;
  // Enough for every reader there will be; more would mean that leases leak.
  static constexpr int kLeases = 4;

  struct Lease {
    bool open = false;
    const Event* last_read = nullptr;  // closed, but not free before it has passed
    std::vector<std::uint64_t> lo;     // [S] lowest leased row, or kNothingLeased
    std::vector<Window> windows;
  };

  void CloseLease(int entry, const Event* last_read) TETRION_EXCLUDES(mu_);
  bool Leased(int shard, std::uint64_t below) const TETRION_REQUIRES(mu_);
  void Reclaim(int shard) TETRION_REQUIRES(mu_);
  void CommitShard(int shard) TETRION_REQUIRES(mu_);
  int FreeEntry() TETRION_REQUIRES(mu_);
  bool Draw(int count, std::vector<Window>& windows) TETRION_REQUIRES(mu_);
  void Register(Lease& lease, int rows) TETRION_REQUIRES(mu_);

  const GateConfig config_;
  mutable Mutex mu_;
  Limiter limiter_ TETRION_GUARDED_BY(mu_);
  CondVar changed_;  // a commit, a closed lease, a drawn window
  std::vector<CommitManager> commits_ TETRION_GUARDED_BY(mu_);  // [S]
  std::vector<const Event*> written_ TETRION_GUARDED_BY(mu_);   // [S] of the last commit with one
  const std::unique_ptr<Selector> selector_ TETRION_GUARDED_BY(mu_);
  std::array<Lease, kLeases> leases_ TETRION_GUARDED_BY(mu_);
  std::vector<ShardRange> ranges_ TETRION_GUARDED_BY(mu_);  // [S] scratch of Draw
};

}  // namespace tetrion
