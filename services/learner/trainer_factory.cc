#include "services/learner/trainer_factory.h"

#include "lib/metrics/figures.h"
#include "lib/rl/vtrace/vtrace_figures.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {

static_assert(NameMetrics(kVtraceFigures));

std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, int threads) {
  const VtraceConfig config = {.network = run.network,
                               .seed = run.seed,
                               .window = run.window,
                               .batch_windows = run.batch_windows,
                               .discount = run.discount,
                               .lambda = run.lambda,
                               .rho_clip = run.rho_clip,
                               .c_clip = run.c_clip,
                               .value_coef = run.value_coef,
                               .entropy_coef = run.entropy_coef,
                               .learning_rate = run.learning_rate,
                               .decay_updates = run.decay_updates,
                               .grad_clip = run.grad_clip,
                               .reuse = run.reuse,
                               .max_lag = run.max_lag,
                               .normalise_advantage = run.normalise_advantage,
                               .ppo_clip = run.ppo_clip,
                               .symlog_reward = run.reward_scale == "symlog",
                               .minibatches = run.minibatches,
                               .threads = threads};
  return MakeVtraceTrainer(config, EnvSpecOf(run), RowSpecOf(run));
}

}  // namespace tetrion::learner
