#include "services/coordinator/run_state.h"

#include <algorithm>
#include <cmath>

namespace tetrion::coordinator {
namespace {

template <typename Get>
double Mean(const std::deque<wire::EpisodeReport>& episodes, Get get) {
  double sum = 0;
  for (const wire::EpisodeReport& episode : episodes) sum += get(episode);
  return episodes.empty() ? 0 : sum / static_cast<double>(episodes.size());
}

}  // namespace

void EpisodeWindow::Add(std::span<const wire::EpisodeReport> episodes) {
  // Those before the last kEpisodes would leave the window again.
  auto first = episodes.end();
  for (std::size_t count = 0; first != episodes.begin() && count < kEpisodes;) {
    if (std::isfinite((--first)->episode_return)) ++count;
  }
  for (; first != episodes.end(); ++first) {
    if (!std::isfinite(first->episode_return)) continue;
    episodes_.push_back(*first);
    if (episodes_.size() > kEpisodes) episodes_.pop_front();
  }
}

double EpisodeWindow::MeanReturn() const {
  return Mean(episodes_,
              [](const wire::EpisodeReport& e) { return static_cast<double>(e.episode_return); });
}

double EpisodeWindow::MeanLines() const {
  return Mean(episodes_, [](const wire::EpisodeReport& e) { return static_cast<double>(e.lines); });
}

double EpisodeWindow::MeanLength() const {
  return Mean(episodes_,
              [](const wire::EpisodeReport& e) { return static_cast<double>(e.length_steps); });
}

RunState::RunState(const Clock& clock, StopAfter stop_after, bool whole_run,
                   const StoredRun& stored)
    : clock_(clock),
      stop_after_(stop_after),
      whole_run_(whole_run),
      served_before_s_(stored.counts.served_s),
      start_ns_(clock.NowNs()),
      env_steps_(stored.counts.env_steps),
      episodes_(stored.counts.tokens.done),
      return_best_(stored.counts.return_best) {
  window_.Add(stored.last_episodes);
  Sample();
}

void RunState::AddEpisodes(std::span<const wire::EpisodeReport> episodes) {
  for (const wire::EpisodeReport& episode : episodes) {
    const double value = episode.episode_return;
    if (std::isfinite(value) && (episodes_ == 0 || value > return_best_)) return_best_ = value;
    ++episodes_;
  }
  window_.Add(episodes);
}

void RunState::Sample() {
  const std::int64_t now_ns = clock_.NowNs();
  samples_.push_back({now_ns, env_steps_, episodes_});
  while (samples_.size() > 2 && now_ns - samples_.front().at_ns > kRateWindowNs) {
    samples_.pop_front();
  }
}

double RunState::Rate(std::uint64_t RateSample::* figure) const {
  const RateSample& first = samples_.front();
  const RateSample& last = samples_.back();
  const auto span_ns = static_cast<double>(last.at_ns - first.at_ns);
  return span_ns > 0 ? static_cast<double>(last.*figure - first.*figure) * 1e9 / span_ns : 0;
}

double RunState::StepsPerSecond() const {
  return Rate(&RateSample::env_steps);
}
double RunState::EpisodesPerSecond() const {
  return Rate(&RateSample::episodes);
}

double RunState::ElapsedSeconds() const {
  return static_cast<double>(clock_.NowNs() - start_ns_) * 1e-9;
}

bool RunState::StopReached() const {
  return (stop_after_.seconds > 0 && StopSeconds() >= stop_after_.seconds) ||
         (stop_after_.steps > 0 && env_steps_ >= stop_after_.steps);
}

double RunState::Progress() const {
  double progress = 0;
  if (stop_after_.seconds > 0) progress = StopSeconds() / stop_after_.seconds;
  if (stop_after_.steps > 0) {
    progress = static_cast<double>(env_steps_) / static_cast<double>(stop_after_.steps);
  }
  return std::min(progress, 1.0);
}

}  // namespace tetrion::coordinator
