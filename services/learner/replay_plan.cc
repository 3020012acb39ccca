#include "services/learner/replay_plan.h"

#include "lib/replay/selectors/fifo.h"
#include "lib/replay/selectors/online.h"
#include "lib/replay/selectors/uniform.h"
#include "lib/run/replay_need.h"

namespace tetrion::learner {
namespace {

// How far trainer and ingest may be apart, in batches' worth: small enough that the ratio holds
// within seconds, large enough that neither waits for every row.
constexpr double kBatchesApart = 4.0;

}  // namespace

bool DrawsAgain(const RunConfig& run) {
  return run.algo == "dreamer";
}

std::unique_ptr<Selector> MakeSelector(const RunConfig& run, const ReplayShape& shape) {
  if (!DrawsAgain(run)) return std::make_unique<FifoSelector>(shape.shards, run.window);
  const UniformSelector::Config uniform = {.shards = shape.shards,
                                           .window_rows = run.window + 1,
                                           .lanes = shape.lanes,
                                           .seed = run.seed};
  const double share = run.dreamer.online_share;
  if (share == 0) return std::make_unique<UniformSelector>(uniform);
  return std::make_unique<OnlineSelector>(
      OnlineSelector::Config{.uniform = uniform, .share = share});
}

// Every row of a lane is the start of one window, so samples per insert are the windows that train
// `train_ratio` rows.
Limiter LimiterOf(const RunConfig& run) {
  if (!DrawsAgain(run)) return FifoLimiter(run.batch_windows);
  const double per_row = run.dreamer.train_ratio / run.window;
  const double ahead = kBatchesApart * run.batch_windows;
  return Limiter::SamplesPerInsert(per_row, UniformFirstItems(run.window, run.batch_windows), ahead,
                                   ahead * per_row);
}

int BatchLanesOf(const RunConfig& run, const ReplayShape& shape) {
  return DrawsAgain(run) ? run.batch_windows : run.batch_windows * shape.lanes;
}

}  // namespace tetrion::learner
