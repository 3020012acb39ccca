#include "lib/policy/cuda/device_dreamer_policy.h"

#include "lib/core/check.h"
#include "lib/cuda/launch.h"
#include "lib/policy/cuda/decide_by_logits.h"
#include "lib/policy/cuda/dreamer_choice.cuh"
#include "lib/policy/judge_weights.h"

namespace tetrion {
namespace {

const DreamerShape& ShapeOf(const DevicePolicyConfig& config, const EnvSpec& env) {
  TETRION_CHECK(config.expand != nullptr, "a model reads a view");
  TETRION_CHECK(config.dreamer.has_value() && config.dreamer->floats == env.obs.view_floats &&
                    config.dreamer->actions == env.action.count,
                "a model of this environment");
  return *config.dreamer;
}

}  // namespace

DeviceDreamerPolicy::DeviceDreamerPolicy(const cuda::Device& device,
                                         const DevicePolicyConfig& config, const EnvSpec& env)
    : config_(config),
      env_(env),
      model_(device, ShapeOf(config, env), config.seed, config.lanes),
      not_finite_(device),
      view_(device, LaneFloatBytes(config.lanes, env.obs.view_floats), "views of a row"),
      logits_(device, LaneFloatBytes(config.lanes, env.action.count), "logits of a row") {}

void DeviceDreamerPolicy::Decide(const RowSlots& slots, const std::uint64_t* row,
                                 const std::uint64_t* token_ids, const std::uint32_t* steps,
                                 cuda::Stream& stream) {
  const DecidedRow decided = RowToDecide(slots, row, token_ids, steps, config_, env_,
                                         model_.parameters().device_version());
  config_.expand(slots, row, env_.obs.queue_size, view_.data<float>(), stream);
  model_.Step(slots, row, {config_.seed, decided.token_ids, decided.steps}, view_.data<float>(),
              logits_.data<float>(), stream);
  const cuda::DeviceSpan<float> logits(logits_.data<float>(), logits_.bytes() / sizeof(float));
  const cuda::DeviceSpan<const float> decisive(logits.data(), logits.size());
  const unsigned blocks = DecideBlocks(decided);
  cuda::Launch(stream, MixLegalLogits, blocks, kDecideThreads, 0, decided, logits,
               config_.dreamer->actor_unimix);
  LaunchDecideByLogits(decided, decisive, config_.greedy, not_finite_.device_count(), stream);
  cuda::Launch(stream, KeepActions, blocks, kDecideThreads, 0, decided, decisive, model_.actions(),
               kNoDreamerAction);
}

LoadResult DeviceDreamerPolicy::LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                                            cuda::Stream& stream) {
  const LoadResult result = JudgeWeights(blob, WeightsBytes());
  if (result == LoadResult::kLoaded) model_.Load(blob, version, stream);
  return result;
}

}  // namespace tetrion
