#include "lib/replay/host_replay_ring.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/frame/row_check.h"

namespace tetrion {
namespace {

constexpr std::size_t kBaseAlignBytes = 256;
constexpr std::uint64_t kNothingLeased = ~std::uint64_t{0};

std::size_t RingBytes(const ReplayConfig& config, const RowLayout& layout) {
  return static_cast<std::size_t>(config.shards) * static_cast<std::size_t>(config.capacity_rows) *
         layout.row_bytes;
}

std::byte* Allocate(const ReplayConfig& config, const RowLayout& layout) {
  const std::size_t bytes = AlignUp(RingBytes(config, layout), kBaseAlignBytes);
  void* memory = std::aligned_alloc(kBaseAlignBytes, bytes);
  if (memory == nullptr) {
    throw Error(ExitCode::kTryAgain, "no memory for a replay of " + std::to_string(bytes) +
                                         " bytes (" + std::to_string(config.shards) + " shards x " +
                                         std::to_string(config.capacity_rows) + " rows x " +
                                         std::to_string(layout.row_bytes) +
                                         " bytes); lower --max-workers, --replay-rows or --lanes");
  }
  std::memset(memory, 0, bytes);  // pages are there before the first row arrives
  return static_cast<std::byte*>(memory);
}

}  // namespace

HostReplayRing::HostReplayRing(const ReplayConfig& config, std::unique_ptr<Selector> selector)
    : config_(config),
      layout_(config.row),
      memory_(Allocate(config, layout_)),
      commits_(static_cast<std::size_t>(config.shards),
               CommitManager(static_cast<std::uint64_t>(config.capacity_rows),
                             static_cast<std::uint64_t>(config.commit_stride),
                             static_cast<std::uint64_t>(config.safety_margin_rows))),
      life_base_(static_cast<std::size_t>(config.shards), 0),
      selector_(std::move(selector)),
      ranges_(static_cast<std::size_t>(config.shards)) {
  for (Lease& lease : leases_) lease.lo.resize(static_cast<std::size_t>(config.shards));
}

HostReplayRing::~HostReplayRing() {
  for (const Lease& lease : leases_) TETRION_CHECK(!lease.open, "a lease outlived its replay");
  std::free(memory_);
}

std::uint64_t HostReplayRing::memory_bytes() const {
  return RingBytes(config_, layout_);
}

void HostReplayRing::BeginGeneration(int shard) {
  MutexLock lock(mu_);
  const auto s = static_cast<std::size_t>(shard);
  CommitShard(shard);
  selector_->OnNewLife(shard);
  life_base_[s] = commits_[s].committed();
}

PushResult HostReplayRing::PushRows(int shard, const std::byte* rows, int count,
                                    std::int64_t timeout_ns, int& pushed) {
  pushed = 0;
  const auto s = static_cast<std::size_t>(shard);
  while (pushed < count) {
    const PushResult acquired = AcquireChunk(shard, timeout_ns);
    if (acquired != PushResult::kPushed) return acquired;
    std::uint64_t from = 0, n = 0;
    {
      MutexLock lock(mu_);
      from = commits_[s].written();
      n = std::min(static_cast<std::uint64_t>(count - pushed), commits_[s].ChunkEnd() - from);
    }
    // A chunk never wraps, since commit_stride divides the capacity. The copy needs no lock: these
    // slots are neither committed nor leased (AcquireChunk).
    std::memcpy(Slot(shard, from), rows + static_cast<std::size_t>(pushed) * layout_.row_bytes,
                n * layout_.row_bytes);
    MutexLock lock(mu_);
    commits_[s].Wrote(n);
    if (commits_[s].CommitDue()) CommitShard(shard);
    pushed += static_cast<int>(n);
  }
  return PushResult::kPushed;
}

PushResult HostReplayRing::AcquireChunk(int shard, std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  const auto s = static_cast<std::size_t>(shard);
  MutexLock lock(mu_);
  while (true) {
    const bool may_insert = selector_->MayInsert();
    if (may_insert && !Leased(shard, commits_[s].DeadBelow())) break;
    if (deadline.Passed()) return may_insert ? PushResult::kLeased : PushResult::kLimited;
    changed_.WaitFor(mu_, deadline.LeftNs());
  }
  const std::uint64_t before = commits_[s].valid_lo();
  commits_[s].Reclaim();
  if (commits_[s].valid_lo() != before) selector_->OnReclaim(shard, commits_[s].valid_lo());
  return PushResult::kPushed;
}

bool HostReplayRing::Leased(int shard, std::uint64_t below) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const Lease& lease) {
    return lease.open && lease.lo[static_cast<std::size_t>(shard)] < below;
  });
}

void HostReplayRing::CommitShard(int shard) {
  const auto s = static_cast<std::size_t>(shard);
  commits_[s].Commit();
  selector_->OnCommit(shard, life_base_[s], commits_[s].SafeMaxT());
  changed_.NotifyAll();
}

std::byte* HostReplayRing::Slot(int shard, std::uint64_t row) const {
  const auto capacity = static_cast<std::uint64_t>(config_.capacity_rows);
  return memory_ +
         (static_cast<std::uint64_t>(shard) * capacity + row % capacity) * layout_.row_bytes;
}

std::byte* HostReplayRing::ObsSlot(int shard, std::uint64_t row) {
  MutexLock lock(mu_);
  const CommitManager& commit = commits_[static_cast<std::size_t>(shard)];
  TETRION_CHECK(row >= commit.written() && row < commit.ChunkEnd(),
                "only rows of the chunk being written may be filled in place");
  TETRION_CHECK(commit.valid_lo() >= commit.DeadBelow(), "the chunk was not reclaimed");
  return Slot(shard, row) + layout_.record;
}

void HostReplayRing::Flush(int shard) {
  MutexLock lock(mu_);
  CommitShard(shard);
}

ReadLease HostReplayRing::OpenLease(int count, int rows, std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  std::vector<Window> windows;
  MutexLock lock(mu_);
  while (true) {
    for (std::size_t s = 0; s < ranges_.size(); ++s) {
      ranges_[s] = {.lo = commits_[s].valid_lo(), .hi = commits_[s].SafeMaxT()};
    }
    if (selector_->Draw(count, ranges_, windows).ready) break;
    if (deadline.Passed()) return {};
    changed_.WaitFor(mu_, deadline.LeftNs());
  }
  int entry = 0;
  while (entry < kLeases && leases_[static_cast<std::size_t>(entry)].open) ++entry;
  TETRION_CHECK(entry < kLeases, "leases leak: close each before opening the fifth");
  Lease& lease = leases_[static_cast<std::size_t>(entry)];
  lease.open = true;
  std::fill(lease.lo.begin(), lease.lo.end(), kNothingLeased);
  for (const Window& window : windows) {
    const auto s = static_cast<std::size_t>(window.shard);
    TETRION_CHECK(window.start >= ranges_[s].lo &&
                      window.start + static_cast<std::uint64_t>(rows) <= ranges_[s].hi,
                  "a selector drew rows that are not committed or already gone");
    lease.lo[s] = std::min(lease.lo[s], window.start);
  }
  changed_.NotifyAll();  // the limiter may let the writer go on
  return ReadLease(this, entry, std::move(windows), rows);
}

void HostReplayRing::CloseLease(int entry) {
  MutexLock lock(mu_);
  leases_[static_cast<std::size_t>(entry)].open = false;
  changed_.NotifyAll();
}

void HostReplayRing::Gather(const ReadLease& lease, RowBatch& batch) const {
  TETRION_CHECK(lease.rows() == batch.steps + 1, "the batch holds T+1 rows");
  TETRION_CHECK(static_cast<int>(lease.windows().size()) == batch.windows, "one slot per window");
  for (int w = 0; w < batch.windows; ++w) {
    const Window& window = lease.windows()[static_cast<std::size_t>(w)];
    TETRION_CHECK(window.lane < 0, "a RowBatch takes whole rows");
    for (int t = 0; t <= batch.steps; ++t) {
      const std::uint64_t row = window.start + static_cast<std::uint64_t>(t);
      batch.CopyRow(layout_, Slot(window.shard, row), t, w);
    }
  }
  batch.MarkCutEpisodes();
}

ShardStats HostReplayRing::Stats(int shard) const {
  MutexLock lock(mu_);
  const CommitManager& commit = commits_[static_cast<std::size_t>(shard)];
  return {.written_rows = commit.written(),
          .committed_rows = commit.committed(),
          .valid_rows = commit.committed() - commit.valid_lo()};
}

std::int64_t HostReplayRing::overwritten_windows() const {
  MutexLock lock(mu_);
  return selector_->overwritten();
}

const char* HostReplayRing::CheckInvariants(int shard, std::uint64_t from, std::uint64_t to) const {
  for (std::uint64_t row = from; row + 1 < to; ++row) {
    if (const char* wrong = CheckRowPair(layout_, Slot(shard, row), Slot(shard, row + 1)))
      return wrong;
  }
  return nullptr;
}

}  // namespace tetrion
