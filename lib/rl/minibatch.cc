#include "lib/rl/minibatch.h"

#include <algorithm>

#include "lib/core/check.h"
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

void Minibatch::Fill(const EnvSpec& env, const RowBatch& batch, int first_lane,
                     bool symlog_reward) {
  TETRION_CHECK(batch.steps == steps && first_lane + lanes <= batch.lanes,
                "the source's batches must keep the trainer's shape");
  const std::int64_t b = lanes;
  for (std::int64_t t = 0; t <= steps; ++t) {
    const std::int64_t from = t * batch.lanes + first_lane;
    const std::int64_t to = t * b;
    env.obs.expand(batch.record.data() + from * env.obs.record_bytes, b, env.obs.queue_size,
                   view.data() + to * env.obs.view_floats);
    if (!mask.empty()) std::copy_n(batch.mask.data() + from, b, mask.data() + to);
    std::copy_n(batch.action.data() + from, b, action.data() + to);
    std::copy_n(batch.log_prob.data() + from, b, behaviour_log_prob.data() + to);
    std::copy_n(batch.reward.data() + from, b, reward.data() + to);
    std::copy_n(batch.cont.data() + from, b, cont.data() + to);
    std::copy_n(batch.flags.data() + from, b, flags.data() + to);
  }
  if (!symlog_reward) return;
  std::transform(reward.begin(), reward.end(), reward.begin(), Symlog);
}

}  // namespace tetrion
