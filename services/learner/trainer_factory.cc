#include "services/learner/trainer_factory.h"

#include <cmath>
#include <utility>

#include "lib/core/check.h"
#include "lib/metrics/figures.h"
#include "lib/nn/categorical.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "lib/rl/vtrace/vtrace_figures.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {

static_assert(kScorerUnitsStepOfRun == kScorerUnitsStep);
static_assert(NameMetrics(kVtraceFigures) && FitBesideTheLearners(kVtraceFigures));
static_assert(NameMetrics(kDreamerFigures) && FitBesideTheLearners(kDreamerFigures));

std::optional<LatentSpec> LatentsOf(const RunConfig& run) {
  if (run.algo != "dreamer") return std::nullopt;
  return DreamerLatents(run.dreamer);
}

EntropyRange EntropyOf(const RunConfig& run) {
  const int actions = EnvSpecOf(run).action.count;
  const double share = run.algo == "dreamer" ? run.dreamer.actor_unimix : 0.0;
  return {.least = LeastEntropy(share, actions), .largest = std::log(static_cast<double>(actions))};
}

std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, const RowSpec& row, int threads,
                                     std::unique_ptr<UpdatePlace> place) {
  // One an algorithm; RunConfig refuses other names.
  if (run.algo == "dreamer") {
    return MakeDreamerTrainer({.settings = run.dreamer,
                               .seed = run.seed,
                               .window = run.window,
                               .batch_lanes = run.batch_windows,
                               .threads = threads},
                              EnvSpecOf(run), std::make_unique<OneLearner>(), std::move(place));
  }
  TETRION_CHECK(run.algo == "vtrace", "an algorithm without a trainer");
  TETRION_CHECK(place == nullptr, "V-trace computes its updates on the CPU");
  return MakeVtraceTrainer({.settings = run.vtrace,
                            .network = run.network,
                            .scorer_units = run.scorer_units,
                            .precision = PrecisionOf(run.precision),
                            .seed = run.seed,
                            .window = run.window,
                            .batch_windows = run.batch_windows,
                            .threads = threads},
                           EnvSpecOf(run), row);
}

}  // namespace tetrion::learner
