#include "lib/replay/gate.h"

#include <algorithm>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kNothingLeased = ~std::uint64_t{0};
// Between two looks at events: they wake no thread.
constexpr std::int64_t kEventPollNs = kNanosPerMilli;

}  // namespace

ReplayGate::ReplayGate(const GateConfig& config, std::unique_ptr<Selector> selector,
                       const Limiter& limiter)
    : config_(config),
      limiter_(limiter),
      commits_(static_cast<std::size_t>(config.shards),
               CommitManager(static_cast<std::uint64_t>(config.capacity_rows),
                             static_cast<std::uint64_t>(config.commit_stride),
                             static_cast<std::uint64_t>(config.safety_margin_rows))),
      written_(static_cast<std::size_t>(config.shards), nullptr),
      selector_(std::move(selector)),
      ranges_(static_cast<std::size_t>(config.shards)) {
  for (Lease& lease : leases_) lease.lo.resize(static_cast<std::size_t>(config.shards));
}

ReplayGate::~ReplayGate() {
  for (const Lease& lease : leases_) TETRION_CHECK(!lease.open, "a lease outlived its replay");
}

void ReplayGate::BeginGeneration(int shard) {
  MutexLock lock(mu_);
  CommitShard(shard);
  selector_->OnGeneration(shard, commits_[static_cast<std::size_t>(shard)].committed());
}

Chunk ReplayGate::Acquire(int shard, int most, std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  TETRION_CHECK(most > 0, "a chunk has at least one row");
  const auto s = static_cast<std::size_t>(shard);
  MutexLock lock(mu_);
  const CommitManager& commit = commits_[s];
  while (true) {
    const bool may_insert = limiter_.MayInsert(selector_->counts());
    if (may_insert && !Leased(shard, commit.DeadBelow())) break;
    if (deadline.Passed()) {
      return {.result = may_insert ? AcquireResult::kLeased : AcquireResult::kLimited};
    }
    changed_.WaitFor(mu_, deadline.LeftNs());
  }
  Reclaim(shard);
  const std::uint64_t left = commit.ChunkEnd() - commit.written();
  return {.result = AcquireResult::kAcquired,
          .shard = shard,
          .first = commit.written(),
          .rows = static_cast<int>(std::min(static_cast<std::uint64_t>(most), left))};
}

bool ReplayGate::Leased(int shard, std::uint64_t below) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const Lease& lease) {
    return lease.open && lease.lo[static_cast<std::size_t>(shard)] < below;
  });
}

void ReplayGate::Reclaim(int shard) {
  const auto s = static_cast<std::size_t>(shard);
  const std::uint64_t dead = commits_[s].DeadBelow();
  if (commits_[s].valid_lo() >= dead) return;
  for (const Lease& lease : leases_) {
    if (lease.last_read != nullptr && lease.lo[s] < dead) lease.last_read->Fence();
  }
  commits_[s].Reclaim();
  selector_->OnReclaim(shard, dead);
}

void ReplayGate::Commit(const Chunk& chunk, const Event* written) {
  const auto s = static_cast<std::size_t>(chunk.shard);
  MutexLock lock(mu_);
  TETRION_CHECK(chunk && chunk.first == commits_[s].written(), "commit what was acquired last");
  commits_[s].Wrote(static_cast<std::uint64_t>(chunk.rows));
  if (written != nullptr) written_[s] = written;
  if (commits_[s].CommitDue()) CommitShard(chunk.shard);
}

void ReplayGate::CommitShard(int shard) {
  CommitManager& commit = commits_[static_cast<std::size_t>(shard)];
  commit.Commit();
  selector_->OnCommit(shard, commit.SafeMaxT());
  changed_.NotifyAll();
}

void ReplayGate::Flush(int shard) {
  MutexLock lock(mu_);
  CommitShard(shard);
}

void ReplayGate::LetWriterRun() {
  MutexLock lock(mu_);
  limiter_ = limiter_.WithoutWriterBound();
  changed_.NotifyAll();
}

ReadLease ReplayGate::OpenLease(int count, int rows, std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  MutexLock lock(mu_);
  int entry = FreeEntry();
  while (entry < 0 || !Draw(count, leases_[static_cast<std::size_t>(entry)].windows)) {
    if (deadline.Passed()) return {};
    changed_.WaitFor(mu_,
                     entry < 0 ? std::min(deadline.LeftNs(), kEventPollNs) : deadline.LeftNs());
    entry = FreeEntry();
  }
  Lease& lease = leases_[static_cast<std::size_t>(entry)];
  Register(lease, rows);
  changed_.NotifyAll();  // the limiter may let the writer go on
  return {this, entry, lease.windows, rows};
}

// A closed lease is needed until its event has passed: its rows are still being read.
int ReplayGate::FreeEntry() {
  bool all_open = true;
  for (int entry = 0; entry < kLeases; ++entry) {
    Lease& lease = leases_[static_cast<std::size_t>(entry)];
    if (lease.last_read != nullptr && lease.last_read->Passed()) lease.last_read = nullptr;
    if (!lease.open && lease.last_read == nullptr) return entry;
    all_open = all_open && lease.open;
  }
  TETRION_CHECK(!all_open, "leases leak: close each before opening the fifth");
  return -1;
}

bool ReplayGate::MaySample(int count) const {
  MutexLock lock(mu_);
  return limiter_.MaySample(selector_->counts(), count);
}

bool ReplayGate::Draw(int count, std::vector<Window>& windows) {
  if (!limiter_.MaySample(selector_->counts(), count)) return false;
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    ranges_[s] = {.lo = commits_[s].valid_lo(), .hi = commits_[s].SafeMaxT()};
  }
  windows.clear();
  return selector_->Draw(count, ranges_, windows).ready;
}

void ReplayGate::Register(Lease& lease, int rows) {
  lease.open = true;
  std::fill(lease.lo.begin(), lease.lo.end(), kNothingLeased);
  for (const Window& window : lease.windows) {
    const auto s = static_cast<std::size_t>(window.shard);
    TETRION_CHECK(window.start >= ranges_[s].lo &&
                      window.start + static_cast<std::uint64_t>(rows) <= ranges_[s].hi,
                  "a selector drew rows that are not committed or already gone");
    lease.lo[s] = std::min(lease.lo[s], window.start);
  }
  for (std::size_t s = 0; s < lease.lo.size(); ++s) {
    if (lease.lo[s] == kNothingLeased || written_[s] == nullptr) continue;
    if (!written_[s]->Passed()) written_[s]->Fence();
  }
}

void ReplayGate::CloseLease(int entry, const Event* last_read) {
  MutexLock lock(mu_);
  Lease& lease = leases_[static_cast<std::size_t>(entry)];
  lease.open = false;
  lease.last_read = last_read;
  changed_.NotifyAll();
}

ShardStats ReplayGate::Stats(int shard) const {
  MutexLock lock(mu_);
  const CommitManager& commit = commits_[static_cast<std::size_t>(shard)];
  return {.written_rows = commit.written(),
          .committed_rows = commit.committed(),
          .valid_rows = commit.committed() - commit.valid_lo()};
}

std::int64_t ReplayGate::overwritten_windows() const {
  MutexLock lock(mu_);
  return selector_->counts().lost;
}

}  // namespace tetrion
