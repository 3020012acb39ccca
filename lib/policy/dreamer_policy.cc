#include "lib/policy/dreamer_policy.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/finite.h"
#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"
#include "lib/nn/categorical.h"
#include "lib/nn/dreamer/draw_latents.h"
#include "lib/nn/dreamer/dreamer_acting.h"
#include "lib/nn/dreamer/mix_legal.h"
#include "lib/policy/judge_weights.h"

namespace tetrion {
namespace {

constexpr std::int32_t kNoAction = -1;

// Turns masked logits [count] into those of the mixture with the uniform distribution over the
// legal actions, which has `share`.
void MixLegal(float* logits, int count, double share) {
  const float log_normaliser = LogNormaliser(logits, count);
  const auto legal = static_cast<int>(
      std::count_if(logits, logits + count, [](float l) { return l > kMaskedLogit / 2; }));
  for (int a = 0; a < count; ++a) {
    if (logits[a] <= kMaskedLogit / 2) continue;
    logits[a] = MixedLogit(logits[a], log_normaliser, share, legal);
  }
}

class DreamerPolicy final : public Policy {
 public:
  DreamerPolicy(const DreamerPolicyConfig& config, const EnvSpec& env);

  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override;
  std::size_t WeightsBytes() const override { return ActingFloats(shape_) * sizeof(float); }
  std::uint32_t version() const override { return version_; }

 private:
  void TakeStates(const PolicyInput& in);
  void DrawStates(const PolicyInput& in);
  bool Judge(const PolicyInput& in);
  std::int32_t Choose(const PolicyInput& in, std::size_t lane, float log_normaliser) const;
  void KeepState(std::size_t lane, std::uint32_t id, std::int32_t action);

  const DreamerPolicyConfig config_;
  const EnvSpec env_;
  const DreamerShape shape_;
  const std::size_t deter_floats_, groups_, classes_, actions_;
  DreamerActing acting_;
  std::uint32_t version_ = 0;
  // By lane id.
  std::vector<float> deter_;          // [lane_ids, D]
  std::vector<std::uint8_t> stoch_;   // [lane_ids, S] class of each group
  std::vector<std::int32_t> action_;  // [lane_ids] taken last; kNoAction: there is no state
  // Of one Act.
  std::vector<float> view_;                                         // [max_lanes, F]
  std::vector<float> before_deter_, before_stoch_, before_action_;  // [max_lanes, D | S C | A]
  std::vector<float> next_deter_, log_probs_;                       // [max_lanes, D | S C]
  std::vector<std::uint8_t> next_classes_;                          // [max_lanes, S]
  std::vector<float> next_stoch_;                                   // [max_lanes, S C] one-hot
  std::vector<float> logits_;                                       // [max_lanes, A]
};

DreamerPolicy::DreamerPolicy(const DreamerPolicyConfig& config, const EnvSpec& env)
    : config_(config),
      env_(env),
      shape_(config.shape),
      deter_floats_(static_cast<std::size_t>(shape_.size.deter)),
      groups_(static_cast<std::size_t>(shape_.size.stoch)),
      classes_(static_cast<std::size_t>(shape_.size.classes)),
      actions_(static_cast<std::size_t>(shape_.actions)),
      acting_(shape_) {
  TETRION_CHECK(config_.max_lanes > 0 && config_.lane_ids > 0, "a policy acts for lanes");
  TETRION_CHECK(shape_.size.classes <= 256, "a class fits a byte");
  TETRION_CHECK(shape_.floats == env.obs.view_floats && shape_.actions == env.action.count,
                "a model of another environment");
  const auto ids = static_cast<std::size_t>(config_.lane_ids);
  deter_.resize(ids * deter_floats_);
  stoch_.resize(ids * groups_);
  action_.assign(ids, kNoAction);
  const auto lanes = static_cast<std::size_t>(config_.max_lanes);
  view_.resize(lanes * static_cast<std::size_t>(shape_.floats));
  before_deter_.resize(lanes * deter_floats_);
  before_stoch_.resize(lanes * groups_ * classes_);
  before_action_.resize(lanes * actions_);
  next_deter_.resize(before_deter_.size());
  log_probs_.resize(before_stoch_.size());
  next_classes_.resize(lanes * groups_);
  next_stoch_.resize(before_stoch_.size());
  logits_.resize(lanes * actions_);
}

ActResult DreamerPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  TETRION_CHECK(in.n <= config_.max_lanes, "more lanes than the policy was made for");
  if (in.n == 0) return ActResult::kOk;
  TETRION_CHECK(in.lane_ids != nullptr && in.flags != nullptr, "a recurrent state needs its lane");
  env_.obs.expand(in.records, in.n, env_.obs.queue_size, view_.data());
  TakeStates(in);
  acting_.Observe(in.n,
                  {.deter = before_deter_.data(),
                   .stoch = before_stoch_.data(),
                   .action = before_action_.data(),
                   .view = view_.data()},
                  next_deter_.data(), log_probs_.data());
  DrawStates(in);
  acting_.ActorLogits(in.n, next_deter_.data(), next_stoch_.data(), logits_.data());
  // Judge everything before anything is written.
  if (!Judge(in)) return ActResult::kNotFinite;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(in.n); ++lane) {
    const float* logits = logits_.data() + lane * actions_;
    const float log_normaliser = LogNormaliser(logits, env_.action.count);
    out.action[lane] = Choose(in, lane, log_normaliser);
    out.log_prob[lane] = logits[out.action[lane]] - log_normaliser;
    KeepState(lane, in.lane_ids[lane], out.action[lane]);
  }
  if (out.value != nullptr) std::fill_n(out.value, in.n, 0.0F);
  return ActResult::kOk;
}

// Lays out what the lanes' last steps have left: zeros where an episode begins, or an id that has
// never acted goes on with one.
void DreamerPolicy::TakeStates(const PolicyInput& in) {
  const auto n = static_cast<std::size_t>(in.n);
  std::fill_n(before_stoch_.data(), n * groups_ * classes_, 0.0F);
  std::fill_n(before_action_.data(), n * actions_, 0.0F);
  for (std::size_t lane = 0; lane < n; ++lane) {
    const std::size_t id = in.lane_ids[lane];
    TETRION_CHECK(id < action_.size(), "a lane id beyond those that the policy was made for");
    float* const deter = before_deter_.data() + lane * deter_floats_;
    if ((in.flags[lane] & kIsFirst) != 0 || action_[id] == kNoAction) {
      std::fill_n(deter, deter_floats_, 0.0F);
      continue;
    }
    std::copy_n(deter_.data() + id * deter_floats_, deter_floats_, deter);
    for (std::size_t g = 0; g < groups_; ++g) {
      before_stoch_[(lane * groups_ + g) * classes_ + stoch_[id * groups_ + g]] = 1.0F;
    }
    before_action_[lane * actions_ + static_cast<std::size_t>(action_[id])] = 1.0F;
  }
}

void DreamerPolicy::DrawStates(const PolicyInput& in) {
  const auto n = static_cast<std::size_t>(in.n);
  std::fill_n(next_stoch_.data(), n * groups_ * classes_, 0.0F);
  for (std::size_t lane = 0; lane < n; ++lane) {
    std::uint8_t* const drawn = next_classes_.data() + lane * groups_;
    DrawLatents({.seed = config_.seed, .token = in.token_ids[lane], .step = in.steps[lane]},
                log_probs_.data() + lane * groups_ * classes_, static_cast<std::uint32_t>(groups_),
                static_cast<std::uint32_t>(classes_), drawn);
    for (std::size_t g = 0; g < groups_; ++g) {
      next_stoch_[(lane * groups_ + g) * classes_ + drawn[g]] = 1.0F;
    }
  }
}

// Masks and mixes the logits. False when anything is not finite.
bool DreamerPolicy::Judge(const PolicyInput& in) {
  const auto n = static_cast<std::size_t>(in.n);
  if (!AllFinite({next_deter_.data(), n * deter_floats_}) ||
      !AllFinite({log_probs_.data(), n * groups_ * classes_}) ||
      !AllFinite({logits_.data(), n * actions_})) {
    return false;
  }
  for (std::size_t lane = 0; lane < n; ++lane) {
    float* const logits = logits_.data() + lane * actions_;
    for (std::size_t a = 0; env_.action.has_mask && a < actions_; ++a) {
      if ((in.masks[lane] >> a & 1) == 0) logits[a] = kMaskedLogit;
    }
    MixLegal(logits, env_.action.count, shape_.actor_unimix);
  }
  return true;
}

std::int32_t DreamerPolicy::Choose(const PolicyInput& in, std::size_t lane,
                                   float log_normaliser) const {
  const float* logits = logits_.data() + lane * actions_;
  if (config_.greedy) return MostProbable(logits, env_.action.count);
  const PhiloxBlock draw =
      PhiloxDraw(config_.seed, in.token_ids[lane], in.steps[lane], PhiloxPurpose::kActions);
  return SampleCategorical(logits, env_.action.count, log_normaliser, UnitDraw(draw.word[0]));
}

void DreamerPolicy::KeepState(std::size_t lane, std::uint32_t id, std::int32_t action) {
  std::copy_n(next_deter_.data() + lane * deter_floats_, deter_floats_,
              deter_.data() + id * deter_floats_);
  std::copy_n(next_classes_.data() + lane * groups_, groups_, stoch_.data() + id * groups_);
  action_[id] = action;
}

LoadResult DreamerPolicy::LoadWeights(std::span<const std::byte> blob, std::uint32_t version) {
  const LoadResult result = TakeWeights(blob, acting_.parameters());
  if (result == LoadResult::kLoaded) version_ = version;
  return result;
}

}  // namespace

std::unique_ptr<Policy> MakeDreamerPolicy(const DreamerPolicyConfig& config, const EnvSpec& env) {
  return std::make_unique<DreamerPolicy>(config, env);
}

}  // namespace tetrion
