#include "lib/rl/vtrace/actor_critic_loss.h"

#include <algorithm>
#include <cmath>

#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

struct RowLoss {
  double policy = 0;
  double policy_slope = 0;  // d policy / d log-probability of the action
};

RowLoss PolicyLoss(double log_prob, double behaviour_log_prob, double advantage, double clip) {
  if (clip <= 0) return {-advantage * log_prob, -advantage};
  const double ratio = std::exp(log_prob - behaviour_log_prob);
  const double clipped = std::clamp(ratio, 1.0 - clip, 1.0 + clip);
  if (ratio * advantage <= clipped * advantage) return {-ratio * advantage, -ratio * advantage};
  return {-clipped * advantage, 0.0};
}

// From probabilities [actions] to slope ([a = action] - p_a) + entropy_coef p_a (log p_a +
// entropy), as d log-probability(action) / d logit_a = [a = action] - p_a and d entropy / d logit_a
// = -p_a (log p_a + entropy), where log p_a + entropy is logit_a + entropy_less_normaliser.
void ToGradient(const float* __restrict logits, int actions, std::int32_t action, double slope,
                double entropy_coef, double entropy_less_normaliser, float* __restrict grad) {
  const auto constant = static_cast<float>(entropy_coef * entropy_less_normaliser - slope);
  const auto of_logit = static_cast<float>(entropy_coef);
  for (int a = 0; a < actions; ++a) grad[a] *= constant + of_logit * logits[a];
  grad[action] += static_cast<float>(slope);
}

}  // namespace

void ActorCriticLoss::Add(const ActorCriticLoss& part) {
  policy += part.policy;
  value += part.value;
  entropy += part.entropy;
  total += part.total;
}

std::int64_t CountTrained(const ActorCriticInput& in) {
  return std::count_if(in.flags, in.flags + in.rows,
                       [](std::uint8_t flags) { return (flags & kIsLast) == 0; });
}

ValueFit MeasureFit(const ActorCriticInput& in) {
  double count = 0, first = 0, apart = 0, apart2 = 0, target2 = 0, error = 0, error2 = 0;
  for (std::int64_t i = 0; i < in.rows; ++i) {
    if ((in.flags[i] & kIsLast) != 0) continue;
    const double v = in.target[i], e = v - in.value[i];
    if (count == 0) first = v;
    ++count;
    target2 += v * v;
    apart += v - first;  // so that equal targets have no variance at all
    apart2 += (v - first) * (v - first);
    error += e;
    error2 += e * e;
  }
  const double variance = apart2 * count - apart * apart;
  return {
      .explained_variance = variance > 0 ? 1.0 - (error2 * count - error * error) / variance : 0.0,
      .target_square = count > 0 ? target2 / count : 0.0};
}

ActorCriticLoss ComputeActorCriticLoss(const ActorCriticCoefficients& coefficients,
                                       const ActorCriticInput& in, std::int64_t begin,
                                       std::int64_t end, std::int64_t trained, float* grad_logits,
                                       float* grad_value) {
  ActorCriticLoss loss;
  const double weight = trained == 0 ? 0.0 : 1.0 / static_cast<double>(trained);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* logits = in.logits + i * in.actions;
    float* grad = grad_logits + i * in.actions;
    if ((in.flags[i] & kIsLast) != 0) {
      std::fill_n(grad, in.actions, 0.0F);
      grad_value[i] = 0.0F;
      continue;
    }
    const double log_normaliser = in.log_normaliser[i], entropy = in.entropy[i];
    const double behaviour = coefficients.ppo_clip > 0 ? in.behaviour_log_prob[i] : 0.0;
    const RowLoss row = PolicyLoss(logits[in.action[i]] - log_normaliser, behaviour,
                                   in.advantage[i], coefficients.ppo_clip);
    const double error = static_cast<double>(in.value[i]) - in.target[i];
    loss.policy += weight * row.policy;
    loss.entropy += weight * entropy;
    loss.value += weight * 0.5 * error * error;
    grad_value[i] = static_cast<float>(weight * coefficients.value_coef * error);
    ToGradient(logits, in.actions, in.action[i], weight * row.policy_slope,
               weight * coefficients.entropy_coef, entropy - log_normaliser, grad);
  }
  loss.total =
      loss.policy + coefficients.value_coef * loss.value - coefficients.entropy_coef * loss.entropy;
  return loss;
}

}  // namespace tetrion
