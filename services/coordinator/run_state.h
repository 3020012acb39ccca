#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/run/stop_after.h"
#include "lib/wire/messages.h"
#include "services/coordinator/store.h"

namespace tetrion::coordinator {

// Means over the last accounted episodes.
class EpisodeWindow {
 public:
  static constexpr std::size_t kEpisodes = Store::kLastEpisodes;

  // A return that is no number does not enter the window.
  void Add(const wire::EpisodeReport& episode);
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
  RunState(const Clock& clock, StopAfter stop_after, const StoredRun& stored);

  void AddEpisode(const wire::EpisodeReport& episode);
  void AddSteps(std::uint64_t steps) { env_steps_ += steps; }
  // Takes a sample for the rates; a few times a second.
  void Sample();

  std::uint64_t env_steps() const { return env_steps_; }
  std::uint64_t episodes() const { return episodes_; }
  double return_best() const { return return_best_; }
  const EpisodeWindow& window() const { return window_; }
  double ElapsedSeconds() const;
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

  const Clock& clock_;
  const StopAfter stop_after_;
  const std::int64_t start_ns_;
  std::uint64_t env_steps_;
  std::uint64_t episodes_;
  double return_best_;
  EpisodeWindow window_;
  std::deque<RateSample> samples_;
};

}  // namespace tetrion::coordinator
