#include "services/learner/trainer_factory.h"

#include "lib/core/check.h"
#include "lib/metrics/figures.h"
#include "lib/rl/vtrace/vtrace_figures.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {

static_assert(NameMetrics(kVtraceFigures) && FitBesideTheLearners(kVtraceFigures));

std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, const RowSpec& row, int threads) {
  // One line an algorithm; RunConfig refuses other names.
  TETRION_CHECK(run.algo == "vtrace", "an algorithm without a trainer");
  return MakeVtraceTrainer({.settings = run.vtrace,
                            .network = run.network,
                            .seed = run.seed,
                            .window = run.window,
                            .batch_windows = run.batch_windows,
                            .threads = threads},
                           EnvSpecOf(run), row);
}

}  // namespace tetrion::learner
