#include "services/learner/checkpoint_agent.h"

#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion::learner {
namespace {

constexpr std::int64_t kWaitNs = 100 * kNanosPerMilli;

}  // namespace

CheckpointAgent::CheckpointAgent(std::string folder, int keep_last,
                                 std::function<void(double)> on_written)
    : store_(std::move(folder), keep_last), on_written_(std::move(on_written)) {}

const CheckpointStore& CheckpointAgent::TakeOver() {
  if (!store_.TakeOver()) {
    log::warn("the folder of checkpoints takes no file now; it is tried again when one is due");
  }
  return store_;
}

void CheckpointAgent::Submit(TrainerState state, CheckpointInfo info) {
  std::int64_t never = 0;
  first_ns_.compare_exchange_strong(never, MonotonicClock::Get().NowNs(),
                                    std::memory_order_relaxed);
  {
    MutexLock lock(mu_);
    pending_ = Snapshot{std::move(state), std::move(info)};
  }
  submitted_.NotifyOne();
}

int CheckpointAgent::DoWork() {
  std::optional<Snapshot> snapshot;
  {
    MutexLock lock(mu_);
    if (!pending_) submitted_.WaitFor(mu_, kWaitNs);
    snapshot.swap(pending_);
  }
  if (!snapshot) return 0;
  try {
    WriteNow(snapshot->state, snapshot->info);
  } catch (const PlaceTaken&) {
    throw;  // another learner has gone on from the newest checkpoint
  } catch (const Error& error) {
    failed_.fetch_add(1, std::memory_order_relaxed);
    log::error("checkpoint not written: {}; training goes on, earlier checkpoints are kept",
               error.what());
  }
  return 1;
}

void CheckpointAgent::WriteNow(const TrainerState& state, const CheckpointInfo& info) {
  const Clock& clock = MonotonicClock::Get();
  const std::int64_t start_ns = clock.NowNs();
  store_.Save(state, info);
  last_ns_.store(clock.NowNs(), std::memory_order_relaxed);
  held_updates_.store(static_cast<std::uint64_t>(info.updates), std::memory_order_relaxed);
  if (on_written_) on_written_(static_cast<double>(clock.NowNs() - start_ns) * 1e-9);
  written_.fetch_add(1, std::memory_order_relaxed);
  log::info("checkpoint at update {}", info.updates);
}

double CheckpointAgent::AgeSeconds() const {
  const std::int64_t last_ns = last_ns_.load(std::memory_order_relaxed);
  const std::int64_t since_ns = last_ns != 0 ? last_ns : first_ns_.load(std::memory_order_relaxed);
  if (since_ns == 0) return 0.0;
  return static_cast<double>(MonotonicClock::Get().NowNs() - since_ns) * 1e-9;
}

}  // namespace tetrion::learner
