#include "lib/nn/chunked_scorer.h"

#include <cmath>

#include "lib/nn/init.h"

namespace tetrion {

ChunkedScorer::ChunkedScorer(const NetworkConfig& config, const EnvSpec& env,
                             const std::string& name)
    : ChunkedNetwork(config, env, name, kChunk),
      action_floats_(env.obs.action_floats),
      state_floats_(env.obs.view_floats - std::int64_t{actions_} * action_floats_) {}

void ChunkedScorer::AllocateWeights(const NetworkConfig& config, std::size_t policy_head,
                                    std::size_t value_head) {
  AllocateParameters(config.training);
  if (config.blank) return;
  std::uint64_t stream = 0;
  for (const ParameterInfo& info : layout_) {
    ++stream;
    if (info.shape.size() != 2) continue;
    const double gain = info.offset == policy_head  ? kPolicyHeadGain
                        : info.offset == value_head ? 1.0
                                                    : std::sqrt(2.0);
    OrthogonalInit(parameters().subspan(info.offset, info.size), info.shape[0], info.shape[1], gain,
                   config.seed, stream);
  }
}

}  // namespace tetrion
