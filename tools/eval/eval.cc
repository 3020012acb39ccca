#include "tools/eval/eval.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/envs/registry.h"
#include "lib/policy/network_policy.h"
#include "lib/policy/random_policy.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"
#include "tools/eval/episode_player.h"
#include "tools/eval/gif_writer.h"
#include "tools/eval/linear_policy.h"
#include "tools/eval/summary.h"

namespace tetrion {
namespace {

constexpr int kCheckpointsRead = 1;  // the store is only read: how many it would keep is no matter
constexpr std::uint32_t kNeverCut = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kStopCheckNs = 50 * kNanosPerMilli;

// A run opened for playing: environment and policy of `lanes` lanes.
struct Session {
  RunConfig config;
  EnvSpec trained_on;  // what the policy sees; `env` may have records with colours
  std::unique_ptr<VecEnv> env;
  std::unique_ptr<Policy> policy;
  EvalSummary summary;  // who plays
};

std::unique_ptr<Policy> LoadPolicy(const EvalOptions& options, const RunFolder& folder, int lanes,
                                   Session& session) {
  if (options.policy != "checkpoint") {
    session.summary.policy = options.policy;
    if (options.policy == "linear") return std::make_unique<LinearPolicy>(session.trained_on);
    return std::make_unique<RandomPolicy>(options.seed, session.trained_on.action);
  }
  const CheckpointStore store(folder.checkpoints(), kCheckpointsRead);
  const auto checkpoint = options.best ? store.LoadBest() : store.LoadNewest();
  if (!checkpoint) {
    throw Error(ExitCode::kConfig, "run " + folder.name() + " has no checkpoint in " +
                                       folder.checkpoints() +
                                       " yet: let it train on, or give --policy random");
  }
  if (!checkpoint->warning.empty()) log::warn("{}", checkpoint->warning);
  session.summary.policy = options.sample ? "sampled" : "greedy";
  session.summary.checkpoint = checkpoint->path;
  session.summary.updates = checkpoint->info.updates;
  auto policy = MakeNetworkPolicy({.network = session.config.network,
                                   .seed = options.seed,
                                   .greedy = !options.sample,
                                   .max_lanes = lanes},
                                  session.trained_on);
  const std::vector<std::byte> blob = PolicyBlobOf(checkpoint->state);
  const auto version = static_cast<std::uint32_t>(checkpoint->info.policy_version);
  switch (policy->LoadWeights(blob, version)) {
    case LoadResult::kLoaded:
      return policy;
    case LoadResult::kNotFinite:
      throw Error(ExitCode::kConfig, checkpoint->path + " holds NaN or infinity: try --best");
    case LoadResult::kWrongSize:
      break;
  }
  throw Error(ExitCode::kConfig, checkpoint->path + " has " + std::to_string(blob.size()) +
                                     " bytes of weights, network " + session.config.network +
                                     " of this run needs " +
                                     std::to_string(policy->WeightsBytes()));
}

// The run's settings with what the user wants played otherwise. A policy that was trained keeps the
// shape of its input, which the preview is a part of.
RunConfig PlayedConfig(const EvalOptions& options, const RunConfig& run) {
  RunConfig played = run;
  played.max_steps = options.max_steps.value_or(run.max_steps);
  if (played.max_steps == 0) played.max_steps = kNeverCut;
  played.iid_pieces = options.iid_pieces.value_or(run.iid_pieces);
  played.queue_size = options.queue_size.value_or(run.queue_size);
  const EnvSpec trained = EnvSpecOf(run), plays = EnvSpecOf(played);
  if (!EnvOf(run.env).Takes(kQueueSizeOption) && (options.iid_pieces || options.queue_size)) {
    throw Error(ExitCode::kUsage,
                run.env + " has no pieces: leave --iid-pieces and --queue-size out");
  }
  if (options.policy == "checkpoint" && trained.obs.view_floats != plays.obs.view_floats) {
    throw Error(ExitCode::kUsage,
                "--queue-size " + std::to_string(played.queue_size) + ": the policy reads view " +
                    trained.obs.view + " with " + std::to_string(run.queue_size) +
                    " pieces of preview, " + std::to_string(trained.obs.view_floats) +
                    " numbers; with these it would be " + std::to_string(plays.obs.view_floats) +
                    ": only --queue-size " + std::to_string(run.queue_size) +
                    " fits, or --policy linear or random, which take any");
  }
  return played;
}

// What a figure of Tetris means: "7-bag pieces, preview 4, cut after 5000 steps".
std::string GameOf(const RunConfig& played) {
  return std::string(played.iid_pieces ? "independent" : "7-bag") + " pieces, preview " +
         std::to_string(played.queue_size) +
         (played.max_steps == kNeverCut
              ? ", never cut"
              : ", cut after " + std::to_string(played.max_steps) + " steps");
}

Session Open(const EvalOptions& options, int lanes) {
  const RunFolder folder = RunFolder::Open(options.runs_dir, options.run);
  Session session;
  RunConfig run = folder.ReadConfig();
  Resolve(run);
  session.config = PlayedConfig(options, run);
  EnvConfig env = EnvConfigOf(session.config);
  env.lanes = lanes;
  env.seed = options.seed;
  session.trained_on = MakeEnvSpec(env);
  if (!options.gif.empty()) {
    const EnvEntry& entry = EnvOf(env.name);
    env.view = entry.ViewOfRecord(entry.picture.record);
  }
  session.env = MakeVecEnv(env);
  session.summary.run = folder.name();
  session.summary.env = session.config.env;
  session.summary.has_lines = session.env->spec().has_lines;
  if (session.summary.has_lines) session.summary.game = GameOf(session.config);
  session.policy = LoadPolicy(options, folder, lanes, session);
  return session;
}

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
  // A row takes an action in every lane but those that begin a game in it.
  for (std::uint64_t steps = 0; player.deaths() < options.deaths && steps < most;
       steps += static_cast<std::uint64_t>(session.env->lanes())) {
    if (stop.load(std::memory_order_acquire) || !player.Step()) break;
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
  Session session = Open(options, LanesOf(options));
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
  Session session = Open(options, /*lanes=*/1);
  const std::uint32_t max_steps =
      options.steps == 0 ? session.config.max_steps : static_cast<std::uint32_t>(options.steps);
  EpisodePlayer player(*session.env, *session.policy, options.episodes, max_steps,
                       session.trained_on.obs.record_bytes);
  if (!options.gif.empty()) return PlayIntoGif(options, session, player, stop, out);
  const RecordPicture picture(session.env->spec());
  const char* frame_start = ::isatty(::fileno(out)) != 0 ? "\x1b[H\x1b[2J" : "";
  const auto frame_ns = static_cast<std::int64_t>(1e9 / options.fps);
  std::int64_t next_ns = MonotonicClock::Get().NowNs();
  while (!stop.load(std::memory_order_acquire) && player.Step()) {
    const EpisodeResult episode = session.env->Episode(0);
    std::fprintf(out, "%s%s%s: %s policy, episode %d of %d, step %u, return %.1f, lines %u\n",
                 frame_start, picture.Text(player.row().record).c_str(),
                 session.summary.run.c_str(), session.summary.policy.c_str(),
                 std::min(player.finished() + 1, options.episodes), options.episodes,
                 episode.length_steps, static_cast<double>(episode.episode_return), episode.lines);
    std::fflush(out);
    next_ns += frame_ns;
    SleepUntil(next_ns, stop);
  }
  return 0;
}

}  // namespace tetrion
