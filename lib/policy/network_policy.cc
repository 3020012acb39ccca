#include "lib/policy/network_policy.h"

#include <algorithm>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/finite.h"
#include "lib/core/philox.h"
#include "lib/nn/categorical.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/policy/judge_weights.h"

namespace tetrion {
namespace {

class NetworkPolicy final : public Policy {
 public:
  NetworkPolicy(const NetworkPolicyConfig& config, const EnvSpec& env)
      : config_(config),
        env_(env),
        network_(MakeNetwork({.name = config.network,
                              .seed = config.seed,
                              .blank = config.blank,
                              .max_states = std::max(1, config.max_lanes),
                              .scorer_units = config.scorer_units,
                              .precision = config.precision},
                             env)) {
    const auto lanes = static_cast<std::size_t>(std::max(1, config.max_lanes));
    view_.resize(lanes * static_cast<std::size_t>(env.obs.view_floats));
    logits_.resize(lanes * static_cast<std::size_t>(env.action.count));
    probability_.resize(logits_.size());
    log_normaliser_.resize(lanes);
    value_.resize(lanes);
  }

  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override;
  std::size_t WeightsBytes() const override { return network_->parameters().size_bytes(); }
  std::uint32_t version() const override { return version_; }

 private:
  const NetworkPolicyConfig config_;
  const EnvSpec env_;
  std::unique_ptr<Network> network_;
  std::uint32_t version_ = 0;
  std::vector<float> view_;                    // [max_lanes, F]
  std::vector<float> logits_, probability_;    // [max_lanes, A]
  std::vector<float> log_normaliser_, value_;  // [max_lanes]
};

ActResult NetworkPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  TETRION_CHECK(in.n <= config_.max_lanes, "more lanes than the policy was made for");
  if (in.n == 0) return ActResult::kOk;
  env_.obs.expand(in.records, in.n, env_.obs.queue_size, view_.data());
  network_->Infer(view_.data(), env_.action.has_mask ? in.masks : nullptr, in.n, logits_.data(),
                  out.value == nullptr ? nullptr : value_.data());
  const int actions = env_.action.count;
  const auto lanes = static_cast<std::size_t>(in.n);
  // Judge everything before anything is written.
  if (!AllFinite(std::span(logits_).first(lanes * static_cast<std::size_t>(actions))) ||
      (out.value != nullptr && !AllFinite(std::span(value_).first(lanes)))) {
    return ActResult::kNotFinite;
  }
  BestDenseKernels().softmax(logits_.data(), in.n, actions, probability_.data(),
                             log_normaliser_.data(), /*entropy=*/nullptr);
  for (int lane = 0; lane < in.n; ++lane) {
    const float* logits = logits_.data() + std::int64_t{lane} * actions;
    if (config_.greedy) {
      out.action[lane] = MostProbable(logits, actions);
    } else {
      const PhiloxBlock draw =
          PhiloxDraw(config_.seed, in.token_ids[lane], in.steps[lane], PhiloxPurpose::kActions);
      const float* probability = probability_.data() + std::int64_t{lane} * actions;
      out.action[lane] = SampleProbability(probability, actions, UnitDraw(draw.word[0]));
    }
    out.log_prob[lane] = logits[out.action[lane]] - log_normaliser_[static_cast<std::size_t>(lane)];
  }
  if (out.value != nullptr) std::copy_n(value_.data(), in.n, out.value);
  return ActResult::kOk;
}

LoadResult NetworkPolicy::LoadWeights(std::span<const std::byte> blob, std::uint32_t version) {
  const LoadResult result = TakeWeights(blob, network_->parameters());
  if (result == LoadResult::kLoaded) version_ = version;
  return result;
}

}  // namespace

std::unique_ptr<Policy> MakeNetworkPolicy(const NetworkPolicyConfig& config, const EnvSpec& env) {
  return std::make_unique<NetworkPolicy>(config, env);
}

}  // namespace tetrion
