#include "lib/rl/minibatch.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/rl/possible_actions.h"
#include "lib/rl/vtrace/vtrace.h"

namespace tetrion {

Minibatch::Minibatch(const EnvSpec& env, int step_count, int group_lanes)
    : steps(step_count), lanes(group_lanes) {
  const std::size_t cells = static_cast<std::size_t>(steps + 1) * static_cast<std::size_t>(lanes);
  record.resize(cells * env.obs.record_bytes);
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
               {.record = record.data(),
                .action = action.data(),
                .log_prob = behaviour_log_prob.data(),
                .mask = mask.empty() ? nullptr : mask.data(),
                .reward = reward.data(),
                .flags = flags.data(),
                .cont = cont.data()});
  CheckActions(action, env.action.count);
  if (!symlog_reward) return;
  std::transform(reward.begin(), reward.end(), reward.begin(), Symlog);
}

void Minibatch::Expand(const EnvSpec& env, int part, int parts) {
  const auto cells = static_cast<std::int64_t>(action.size());
  const std::int64_t begin = cells * part / parts, end = cells * (part + 1) / parts;
  env.obs.expand(record.data() + begin * static_cast<std::int64_t>(env.obs.record_bytes),
                 end - begin, env.obs.queue_size, view.data() + begin * env.obs.view_floats);
}

}  // namespace tetrion
