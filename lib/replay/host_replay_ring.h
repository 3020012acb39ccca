#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/replay/commit_manager.h"
#include "lib/replay/replay_ring.h"

namespace tetrion {

// ReplayRing in ordinary memory. Shard s, row t lies at (s * Tcap + t mod Tcap) * row_bytes; the
// base is 256-byte aligned and never moves.
class HostReplayRing final : public ReplayRing {
 public:
  // Allocates everything. Throws Error(kTryAgain) naming the bytes when memory is not there.
  HostReplayRing(const ReplayConfig& config, std::unique_ptr<Selector> selector);
  ~HostReplayRing() override;

  const RowLayout& layout() const override { return layout_; }
  int shards() const override { return config_.shards; }
  std::uint64_t memory_bytes() const override;

  void BeginGeneration(int shard) override TETRION_EXCLUDES(mu_);
  PushResult PushRows(int shard, const std::byte* rows, int count, std::int64_t timeout_ns,
                      int& pushed) override TETRION_EXCLUDES(mu_);
  std::byte* ObsSlot(int shard, std::uint64_t row) override TETRION_EXCLUDES(mu_);
  void Flush(int shard) override TETRION_EXCLUDES(mu_);

  ReadLease OpenLease(int count, int rows, std::int64_t timeout_ns) override TETRION_EXCLUDES(mu_);
  void Gather(const ReadLease& lease, RowBatch& batch) const override;

  ShardStats Stats(int shard) const override TETRION_EXCLUDES(mu_);
  std::int64_t overwritten_windows() const override TETRION_EXCLUDES(mu_);
  const char* CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const override;

 private:
  // Enough for every reader there will be; more would mean that leases leak.
  static constexpr int kLeases = 4;

  struct Lease {
    bool open = false;
    std::vector<std::uint64_t> lo;  // [S] lowest leased row, or kNothingLeased
  };

  void CloseLease(int entry) override TETRION_EXCLUDES(mu_);
  // Waits for limiter and leases, then gives up the rows that the shard's next chunk destroys.
  PushResult AcquireChunk(int shard, std::int64_t timeout_ns) TETRION_EXCLUDES(mu_);
  bool Leased(int shard, std::uint64_t below) const TETRION_REQUIRES(mu_);
  void CommitShard(int shard) TETRION_REQUIRES(mu_);
  std::byte* Slot(int shard, std::uint64_t row) const;

  const ReplayConfig config_;
  const RowLayout layout_;
  std::byte* const memory_;  // [S, Tcap, row_bytes], owned

  mutable Mutex mu_;
  CondVar changed_;  // a commit, a closed lease, a drawn window
  std::vector<CommitManager> commits_ TETRION_GUARDED_BY(mu_);    // [S]
  std::vector<std::uint64_t> life_base_ TETRION_GUARDED_BY(mu_);  // [S]
  const std::unique_ptr<Selector> selector_ TETRION_GUARDED_BY(mu_);
  std::array<Lease, kLeases> leases_ TETRION_GUARDED_BY(mu_);
  std::vector<ShardRange> ranges_ TETRION_GUARDED_BY(mu_);  // [S] scratch of OpenLease
};

}  // namespace tetrion
