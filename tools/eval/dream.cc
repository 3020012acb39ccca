#include "tools/eval/dream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/policy/judge_weights.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/setup/run_policy.h"
#include "tools/eval/dream_picture.h"
#include "tools/eval/episode_player.h"
#include "tools/eval/gif_writer.h"
#include "tools/eval/session.h"

namespace tetrion {
namespace {

constexpr double kLastFrameS = 2;  // so that the end is seen before it starts again

// One episode from its first row on.
struct Played {
  int rows = 0;
  std::vector<float> view;  // [rows, F]
  std::vector<std::int32_t> action;
  std::vector<float> reward;
};

Played PlayOne(const EvalOptions& options, Session& session, const std::atomic<bool>& stop) {
  const auto most_steps =
      std::min(static_cast<std::uint32_t>(options.steps), session.config.max_steps);
  EpisodePlayer player(*session.env, *session.policy, /*episodes=*/1, most_steps);
  const ObsSpec& obs = session.trained_on.obs;
  const auto floats = static_cast<std::size_t>(obs.view_floats);
  Played played;
  while (player.Step()) {
    if (stop.load(std::memory_order_acquire)) {
      throw Error(ExitCode::kTryAgain, "interrupted before the episode was played");
    }
    const std::size_t at = played.view.size();
    played.view.resize(at + floats);
    obs.expand(player.row().record, 1, obs.queue_size, played.view.data() + at);
    played.action.push_back(player.action(0));
    played.reward.push_back(player.row().reward[0]);
    ++played.rows;
  }
  if (played.rows <= options.context) {
    throw Error(ExitCode::kUsage, "the episode has " + std::to_string(played.rows) +
                                      " rows, of which --context " +
                                      std::to_string(options.context) +
                                      " leaves none to imagine: give a smaller --context or "
                                      "another --seed");
  }
  return played;
}

DreamtEpisode Dream(const EvalOptions& options, const Session& session, const Played& played) {
  const DreamerShape shape = ModelShapeOf(session.trained_on, session.config.dreamer);
  DreamerDream model(shape);
  const std::vector<std::byte> blob = BlobOf(session.checkpoint->state, {kModelPrefix});
  const LoadResult result = TakeWeights(blob, model.parameters());
  if (result != LoadResult::kLoaded) {
    RefuseWeights(session.config, *session.checkpoint, result, blob.size(),
                  model.parameters().size_bytes());
  }
  DreamtEpisode episode;
  episode.input = shape.input;
  episode.rows = played.rows;
  episode.floats = static_cast<int>(shape.floats);
  episode.context = options.context;
  episode.real = played.view;
  episode.dreamt =
      model.Dream({.rows = played.rows, .view = played.view.data(), .action = played.action.data()},
                  options.context, options.seed);
  const Discount discount = DiscountOf(session.config.dreamer);
  for (float& cont : episode.dreamt.cont) cont *= static_cast<float>(discount.beside_head);
  MeasureDream(episode);
  return episode;
}

double MeanOf(const std::vector<float>& numbers, int first, int end) {
  double sum = 0;
  for (int row = first; row < end; ++row) sum += numbers[static_cast<std::size_t>(row)];
  return sum / (end - first);
}

void Print(const Session& session, const Played& played, const DreamtEpisode& episode,
           std::FILE* out) {
  std::fprintf(out, "%s (%s), %lld updates: %d rows, the first %d seen, the others imagined\n",
               session.summary.run.c_str(), session.summary.env.c_str(), session.summary.updates,
               episode.rows, episode.context);
  std::fprintf(out,
               "   row              error  unchanged       loss     reward   imagined  goes on\n");
  for (int row = 0; row < episode.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const bool seen = row < episode.context;
    std::fprintf(
        out, "%6d  %-8s %10.4f %10.4f %10.3f %10.3f %10.3f %8.3f\n", row,
        seen ? "seen" : "imagined", static_cast<double>(episode.error[at]),
        static_cast<double>(episode.still[at]), static_cast<double>(episode.dreamt.loss[at]),
        static_cast<double>(played.reward[at]), static_cast<double>(episode.dreamt.reward[at]),
        static_cast<double>(episode.dreamt.cont[at]));
  }
  std::fprintf(out,
               "mean error of a number: %.4f of rows seen, %.4f of rows imagined; %.4f if nothing "
               "had changed since the last row seen\n",
               MeanOf(episode.error, 0, episode.context),
               MeanOf(episode.error, episode.context, episode.rows),
               MeanOf(episode.still, episode.context, episode.rows));
}

}  // namespace

int RunDream(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  Session session = OpenSession(options, /*lanes=*/1);
  const Played played = PlayOne(options, session, stop);
  const DreamtEpisode episode = Dream(options, session, played);
  if (!options.gif.empty()) {
    DreamPicture picture(episode);
    GifWriter gif(options.gif, picture.size(), 1 / options.fps, Canvas::Palette());
    for (int row = 0; row < episode.rows; ++row) gif.AddIndices(picture.Draw(row));
    gif.Finish(kLastFrameS);
  }
  Print(session, played, episode, out);
  if (!options.gif.empty()) {
    std::fprintf(out, "%d frames in %s\n", episode.rows, options.gif.c_str());
  }
  return 0;
}

}  // namespace tetrion
