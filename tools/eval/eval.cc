#include "tools/eval/eval.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "tools/eval/deaths_notice.h"
#include "tools/eval/episode_player.h"
#include "tools/eval/gif_writer.h"
#include "tools/eval/session.h"
#include "tools/eval/summary.h"

namespace tetrion {
namespace {

constexpr std::int64_t kStopCheckNs = 50 * kNanosPerMilli;

double SecondsSince(std::int64_t begin_ns) {
  return static_cast<double>(MonotonicClock::Get().NowNs() - begin_ns) /
         static_cast<double>(kNanosPerSecond);
}

// Sleeps until `at_ns` or until `stop`.
void SleepUntil(std::int64_t at_ns, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_acquire)) {
    const std::int64_t left_ns = at_ns - MonotonicClock::Get().NowNs();
    if (left_ns <= 0) return;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, kStopCheckNs)));
  }
}

int PlayIntoGif(const EvalOptions& options, const Session& session, EpisodePlayer& player,
                const std::atomic<bool>& stop, std::FILE* out) {
  constexpr double kLastFrameS = 2;  // so that the end is seen before it starts again
  RecordPicture picture(session.env->spec());
  GifWriter gif(options.gif, picture.size(), 1 / options.fps);
  while (!stop.load(std::memory_order_acquire) && player.Step()) {
    gif.Add(picture.Draw(player.row().record));
  }
  if (gif.frames() == 0) throw Error(ExitCode::kTryAgain, "interrupted before the first frame");
  gif.Finish(kLastFrameS);
  const EpisodeResult episode = session.env->Episode(0);
  std::fprintf(out, "%s: %s policy, %d of %d episodes, %d frames in %s; the last: %u steps, ",
               session.summary.run.c_str(), session.summary.policy.c_str(), player.finished(),
               options.episodes, gif.frames(), options.gif.c_str(), episode.length_steps);
  std::fprintf(out, "return %.1f, lines %u\n", static_cast<double>(episode.episode_return),
               episode.lines);
  return 0;
}

// Lanes that begin together have all had a safe start before the first can die: of few deaths among
// many lanes that would be most of what is counted.
int LanesOf(const EvalOptions& options) {
  constexpr int kDeathsPerLane = 8;
  if (options.deaths == 0) return std::min(options.lanes, options.episodes);
  return std::min(options.lanes, std::max(1, options.deaths / kDeathsPerLane));
}

PlayedGames PlayEpisodes(const EvalOptions& options, const Session& session,
                         const std::atomic<bool>& stop) {
  EpisodePlayer player(*session.env, *session.policy, options.episodes, session.config.max_steps);
  while (!stop.load(std::memory_order_acquire) && player.Step()) {
  }
  if (player.finished() < options.episodes) {
    // The finished ones are the short ones: a mean over them would mislead.
    throw Error(ExitCode::kTryAgain, "interrupted after " + std::to_string(player.finished()) +
                                         " of " + std::to_string(options.episodes) +
                                         " episodes: no result");
  }
  return {.ended = player.results(), .deaths = player.deaths()};
}

// An interruption ends it like --total-steps: what was reached a death holds all the same.
PlayedGames PlayUntilDeaths(const EvalOptions& options, const Session& session,
                            const std::atomic<bool>& stop) {
  EpisodePlayer player(*session.env, *session.policy, EpisodePlayer::kEndless,
                       session.config.max_steps);
  const std::uint64_t most =
      options.total_steps == 0 ? std::numeric_limits<std::uint64_t>::max() : options.total_steps;
  DeathsNotice notice(MonotonicClock::Get(), options.deaths);
  // A row takes an action in every lane but those that begin a game in it.
  for (std::uint64_t steps = 0; player.deaths() < options.deaths && steps < most;
       steps += static_cast<std::uint64_t>(session.env->lanes())) {
    if (stop.load(std::memory_order_acquire) || !player.Step()) break;
    const std::uint64_t taken = steps + static_cast<std::uint64_t>(session.env->lanes());
    std::fputs(notice.After(player.deaths(), taken).c_str(), stderr);
  }
  PlayedGames games = {.unfinished = player.Unfinished(),
                       .deaths = player.deaths(),
                       .stopped_at_death = player.deaths() >= options.deaths};
  std::vector<bool> is_unfinished(player.results().size(), false);
  for (const EpisodeResult& game : games.unfinished) is_unfinished[game.token_id] = true;
  for (std::size_t token = 0; token < is_unfinished.size(); ++token) {
    if (!is_unfinished[token]) games.ended.push_back(player.results()[token]);
  }
  return games;
}

}  // namespace

int RunEval(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  Session session = OpenSession(options, LanesOf(options));
  const std::int64_t begin_ns = MonotonicClock::Get().NowNs();
  const PlayedGames games = options.deaths > 0 ? PlayUntilDeaths(options, session, stop)
                                               : PlayEpisodes(options, session, stop);
  session.summary.wall_s = SecondsSince(begin_ns);
  Summarise(games, session.summary);
  std::fputs((options.json ? SummaryJson(session.summary) : SummaryText(session.summary)).c_str(),
             out);
  return 0;
}

int RunPlay(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  Session session = OpenSession(options, /*lanes=*/1);
  std::uint32_t max_steps = session.config.max_steps;
  if (options.steps > 0) max_steps = std::min(max_steps, static_cast<std::uint32_t>(options.steps));
  EpisodePlayer player(*session.env, *session.policy, options.episodes, max_steps,
                       session.trained_on.obs.record_bytes);
  if (!options.gif.empty()) return PlayIntoGif(options, session, player, stop, out);
  const RecordPicture picture(session.env->spec());
  const char* frame_start = ::isatty(::fileno(out)) != 0 ? "\x1b[H\x1b[2J" : "";
  const auto frame_ns = static_cast<std::int64_t>(1e9 / options.fps);
  std::int64_t next_ns = MonotonicClock::Get().NowNs();
  while (!stop.load(std::memory_order_acquire) && player.Step()) {
    // On an episode's last row the lane has the next one's account already.
    const bool ended = (player.row().flags[0] & kIsLast) != 0;
    const int number = player.finished() + (ended ? 0 : 1);
    const EpisodeResult episode =
        ended ? player.results()[static_cast<std::size_t>(number - 1)] : session.env->Episode(0);
    std::fprintf(out, "%s%s%s: %s policy, episode %d of %d, step %u, return %.1f, lines %u\n",
                 frame_start, picture.Text(player.row().record).c_str(),
                 session.summary.run.c_str(), session.summary.policy.c_str(), number,
                 options.episodes, episode.length_steps,
                 static_cast<double>(episode.episode_return), episode.lines);
    if (std::fflush(out) != 0) break;  // nobody sees the rest; main tells why
    next_ns += frame_ns;
    SleepUntil(next_ns, stop);
  }
  return 0;
}

}  // namespace tetrion
