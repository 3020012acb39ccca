#include "lib/rl/minibatch.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/rl/vtrace/vtrace.h"

namespace tetrion {

Minibatch::Minibatch(const EnvSpec& env, int step_count, int group_lanes)
    : steps(step_count), lanes(group_lanes) {
  const std::size_t cells = static_cast<std::size_t>(steps + 1) * static_cast<std::size_t>(lanes);
  view.resize(cells * static_cast<std::size_t>(env.obs.view_floats));
  mask.resize(env.action.has_mask ? cells : 0);
  action.resize(cells);
  behaviour_log_prob.resize(cells);
  reward.resize(cells);
  cont.resize(cells);
  flags.resize(cells);
}

void Minibatch::Fill(const EnvSpec& env, const TrainBatch& batch, int first_lane,
                     bool symlog_reward) {
  TETRION_CHECK(batch.steps() == steps, "the source's batches must keep the trainer's shape");
  batch.Gather(first_lane, lanes,
               {.obs = &env.obs,
                .view = view.data(),
                .action = action.data(),
                .log_prob = behaviour_log_prob.data(),
                .mask = mask.empty() ? nullptr : mask.data(),
                .reward = reward.data(),
                .flags = flags.data(),
                .cont = cont.data()});
  const auto count = static_cast<std::uint32_t>(env.action.count);
  const bool possible = std::all_of(action.begin(), action.end(), [count](std::int32_t a) {
    return static_cast<std::uint32_t>(a) < count;
  });
  if (!possible) {
    throw Error(ExitCode::kInternal,
                "a row of the replay has an action that the environment has not: a process wrote "
                "into a ring after the learner had checked it; end what else has it open");
  }
  if (!symlog_reward) return;
  std::transform(reward.begin(), reward.end(), reward.begin(), Symlog);
}

}  // namespace tetrion
