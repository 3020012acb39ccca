#include "services/learner/trainer_agent.h"

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/error.h"

namespace tetrion::learner {

TrainerAgent::TrainerAgent(const Config& config, Hooks hooks, Trainer& trainer, BatchSource& source,
                           WeightsSlotWriter writer, const Versions& versions,
                           CheckpointAgent& checkpoints, std::uint64_t resumed_updates)
    : config_(config),
      hooks_(std::move(hooks)),
      trainer_(trainer),
      source_(source),
      writer_(writer),
      versions_(versions),
      checkpoints_(checkpoints),
      watch_(config.entropy, trainer.Figures(), MonotonicClock::Get()) {
  progress_.updates = progress_.resumed = resumed_updates;
}

int TrainerAgent::DoWork() {
  const int batches = Train();
  // Also without a batch: rows may not come again before this process dies.
  CheckpointIfDue();
  return batches;
}

int TrainerAgent::Train() {
  if (!published_ && !Publish()) {
    CheckSlotIsNotAhead();
    // The version block is used up; the next heartbeat brings another.
    const std::int64_t start_ns = MonotonicClock::Get().NowNs();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MutexLock lock(mu_);
    progress_.version_wait_ns += MonotonicClock::Get().NowNs() - start_ns;
    return 0;
  }
  const UpdateStats stats = trainer_.Step(source_, writer_.NewestVersion());
  if (stats.status != BatchStatus::kReady) {
    hooks_.on_wait(stats.wait_s);
    MutexLock lock(mu_);
    ++progress_.not_ready;
    return 0;
  }
  hooks_.on_update(stats);
  {
    MutexLock lock(mu_);
    progress_.updates += static_cast<std::uint64_t>(stats.updates);
    progress_.windows += static_cast<std::uint64_t>(config_.batch_windows);
    if (stats.updates > 0) {
      ++progress_.batches;
      progress_.steps_trained += static_cast<std::uint64_t>(config_.batch_steps);
    }
    progress_.skipped += static_cast<std::uint64_t>(stats.skipped);
    // Figures of an update that was not taken tell nothing: some are 0 still, some not finite.
    const std::array figures = stats.updates > 0 ? stats.figures : progress_.last.figures;
    progress_.last = stats;
    progress_.last.figures = figures;
  }
  watch_.Look(stats);
  // The same weights under a new version would make the rows that they played look old.
  if (stats.updates == 0) return 1;
  published_ = false;
  Publish();
  return 1;
}

bool TrainerAgent::Publish() {
  const std::uint32_t version = versions_.After(writer_.NewestVersion());
  if (version == 0) return false;
  const std::int64_t start_ns = MonotonicClock::Get().NowNs();
  trainer_.PolicyBlob(blob_);
  writer_.Publish(version, blob_);
  published_ = true;
  hooks_.on_publish(static_cast<double>(MonotonicClock::Get().NowNs() - start_ns) * 1e-9);
  MutexLock lock(mu_);
  progress_.version = version;
  return true;
}

// A limit is committed before a version below it is published, so the account has gone back.
void TrainerAgent::CheckSlotIsNotAhead() const {
  const std::uint32_t newest = writer_.NewestVersion();
  const std::uint32_t limit = versions_.limit();
  if (newest == 0 || newest < limit) return;
  throw Error(ExitCode::kConfig,
              config_.region + " holds weights of version " + std::to_string(newest) +
                  ", the account reserves those below " + std::to_string(limit) +
                  ": tetrion.db is older than the region; end the run's actors, remove " +
                  config_.region + " and start the learner again");
}

void TrainerAgent::CheckpointIfDue() {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  if (now_ns < next_checkpoint_ns_) return;
  if (checkpoints_.Holds(Progress().updates)) return;
  checkpoints_.Submit(trainer_.Save(), Describe());
  next_checkpoint_ns_ = now_ns + config_.checkpoint_every_ns;
}

CheckpointInfo TrainerAgent::Describe() const {
  CheckpointInfo info = hooks_.describe();
  const TrainerProgress progress = Progress();
  info.updates = static_cast<std::int64_t>(progress.updates);
  info.policy_version = progress.version;
  return info;
}

void TrainerAgent::SaveFinal() {
  const CheckpointInfo info = Describe();
  if (info.updates == 0 || checkpoints_.Holds(static_cast<std::uint64_t>(info.updates))) return;
  TrainerState state;
  try {
    state = trainer_.Save();
  } catch (const Error&) {  // of a device that has failed; an earlier state may wait on the host
    (void)checkpoints_.DoWork();
    throw;
  }
  checkpoints_.WriteNow(state, info);
}

TrainerProgress TrainerAgent::Progress() const {
  MutexLock lock(mu_);
  return progress_;
}

}  // namespace tetrion::learner
