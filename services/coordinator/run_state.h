#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/run/value_text.h"
#include "lib/wire/messages.h"
#include "services/coordinator/store.h"

namespace tetrion::coordinator {

// Means over the last accounted episodes.
class EpisodeWindow {
 public:
  static constexpr std::size_t kEpisodes = Store::kLastEpisodes;

  // Returns that are no number do not enter the window.
  void Add(std::span<const wire::EpisodeReport> episodes);
  std::size_t size() const { return episodes_.size(); }
  // 0 without episodes.
  double MeanReturn() const;
  double MeanLines() const;
  double MeanLength() const;

 private:
  std::deque<wire::EpisodeReport> episodes_;
};

// The figures of the run beyond the ledger's: steps, returns, rates, progress. One thread.
class RunState {
 public:
  // `whole_run`: a time to stop after counts what earlier coordinators have served, as steps always
  // do.
  RunState(const Clock& clock, StopAfter stop_after, bool whole_run, const StoredRun& stored);

  void AddEpisodes(std::span<const wire::EpisodeReport> episodes);
  void AddSteps(std::uint64_t steps) { env_steps_ += steps; }
  // Takes a sample for the rates; a few times a second.
  void Sample();

  std::uint64_t env_steps() const { return env_steps_; }
  std::uint64_t episodes() const { return episodes_; }
  double return_best() const { return return_best_; }
  const EpisodeWindow& window() const { return window_; }
  double ElapsedSeconds() const;                                                // since this start
  double ServedSeconds() const { return served_before_s_ + ElapsedSeconds(); }  // of the whole run
  // Over the last 5 s.
  double StepsPerSecond() const;
  double EpisodesPerSecond() const;
  bool StopReached() const;
  // Part of the way to the stop, 0 to 1; 0 when the run has no end.
  double Progress() const;
  const StopAfter& stop_after() const { return stop_after_; }

 private:
  struct RateSample {
    std::int64_t at_ns = 0;
    std::uint64_t env_steps = 0, episodes = 0;
  };
  static constexpr std::int64_t kRateWindowNs = 5 * kNanosPerSecond;
  double Rate(std::uint64_t RateSample::* figure) const;
  double StopSeconds() const { return whole_run_ ? ServedSeconds() : ElapsedSeconds(); }

  const Clock& clock_;
  const StopAfter stop_after_;
  const bool whole_run_;
  const double served_before_s_;
  const std::int64_t start_ns_;
  std::uint64_t env_steps_;
  std::uint64_t episodes_;
  double return_best_;
  EpisodeWindow window_;
  std::deque<RateSample> samples_;
};

// Policy versions of the learner, reserved in committed blocks so that a version never goes down,
// also not over a crash of either side. A limit is told only once its reservation is committed.
class VersionBlocks {
 public:
  // At most one block is granted in two heartbeats: one says that there is need, the next brings
  // the answer. So it is kBlock for every second between heartbeats, many times the updates made.
  // Every new learner takes a block of its own; with a heartbeat a second there are 2^32 / kBlock.
  static constexpr std::uint32_t kBlock = 10'000;
  VersionBlocks(std::uint32_t first, std::uint32_t limit, std::uint32_t heartbeat_ms = 1000)
      : block_(kBlock * std::max<std::uint32_t>(1, (heartbeat_ms + 999) / 1000)),
        first_(first),
        limit_(limit),
        promised_(limit) {}

  std::uint32_t first() const { return first_; }  // of the present learner
  std::uint32_t limit() const { return limit_; }  // end of the last block reserved
  // A new learner starts where the last block ends; it is told its first block with its session.
  void Begin() {
    first_ = limit_;
    Grow();
  }
  // The learner is near the end of its block.
  bool NeedsMore(std::uint32_t version) const {
    return std::uint64_t{version} + block_ / 2 > limit_;
  }
  // Reserves a further block unless one is on its way to the store.
  bool Extend(std::uint64_t committed) { return Promised(committed) == limit_ && Grow(); }
  // Begin or Extend is in the change with this ticket.
  void PersistedBy(std::uint64_t ticket) { ticket_ = ticket; }
  // The newest limit that is committed.
  std::uint32_t Promised(std::uint64_t committed) {
    if (ticket_ <= committed) promised_ = limit_;
    return promised_;
  }

 private:
  // False where all versions are used up: none is ever given twice.
  bool Grow() {
    if (limit_ > std::numeric_limits<std::uint32_t>::max() - block_) {
      if (!std::exchange(told_, true)) {
        log::error(
            "the run has used up its {} policy versions: no update follows; begin a new run "
            "with --init-from and this one's name",
            limit_);
      }
      return false;
    }
    limit_ += block_;
    return true;
  }

  const std::uint32_t block_;
  std::uint32_t first_, limit_, promised_;
  std::uint64_t ticket_ = 0;
  bool told_ = false;  // that versions are used up
};

}  // namespace tetrion::coordinator
