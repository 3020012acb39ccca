#include "lib/policy/cuda/device_mlp_policy.h"

#include "lib/core/check.h"
#include "lib/policy/cuda/decide_by_logits.h"
#include "lib/policy/judge_weights.h"

namespace tetrion {

DeviceMlpPolicy::DeviceMlpPolicy(const cuda::Device& device, const DevicePolicyConfig& config,
                                 const EnvSpec& env)
    : config_(config),
      env_(env),
      network_(device, env, config.seed, DeviceMlp::BlockLanesFor(config.lanes)),
      not_finite_(device),
      view_(device, LaneFloatBytes(config.lanes, env.obs.view_floats), "views of a row"),
      logits_(device, LaneFloatBytes(config.lanes, env.action.count), "logits of a row") {
  TETRION_CHECK(config.expand != nullptr, "network mlp reads a view");
}

void DeviceMlpPolicy::Decide(const RowSlots& slots, const std::uint64_t* row,
                             const std::uint64_t* token_ids, const std::uint32_t* steps,
                             cuda::Stream& stream) {
  const DecidedRow decided = RowToDecide(slots, row, token_ids, steps, config_, env_,
                                         network_.parameters().device_version());
  config_.expand(slots, row, env_.obs.queue_size, view_.data<float>(), stream);
  network_.Logits(view_.data<float>(), config_.lanes, logits_.data<float>(), stream);
  const cuda::DeviceSpan<const float> logits(logits_.data<float>(),
                                             logits_.bytes() / sizeof(float));
  LaunchDecideByLogits(decided, logits, config_.greedy, not_finite_.device_count(), stream);
}

LoadResult DeviceMlpPolicy::LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                                        cuda::Stream& stream) {
  const LoadResult result = JudgeWeights(blob, WeightsBytes());
  if (result == LoadResult::kLoaded) network_.Load(blob, version, stream);
  return result;
}

}  // namespace tetrion
