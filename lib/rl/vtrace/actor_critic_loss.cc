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

// Entropy of one row; writes the probabilities into `probability`. Actions of probability 0 count
// nothing.
double RowEntropy(const float* logits, int actions, float log_normaliser, float* probability) {
  float entropy = 0.0F;
  for (int a = 0; a < actions; ++a) {
    const float log_prob = logits[a] - log_normaliser;
    const float p = std::exp(log_prob);
    probability[a] = p;
    if (p > 0.0F) entropy -= p * log_prob;
  }
  return entropy;
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

ActorCriticLoss ComputeActorCriticLoss(const ActorCriticCoefficients& coefficients,
                                       const ActorCriticInput& in, std::int64_t begin,
                                       std::int64_t end, std::int64_t trained, float* grad_logits,
                                       float* grad_value) {
  ActorCriticLoss loss;
  std::fill_n(grad_logits + begin * in.actions, (end - begin) * in.actions, 0.0F);
  std::fill_n(grad_value + begin, end - begin, 0.0F);
  if (trained == 0) return loss;
  const double weight = 1.0 / static_cast<double>(trained);
  for (std::int64_t i = begin; i < end; ++i) {
    if ((in.flags[i] & kIsLast) != 0) continue;
    const float* logits = in.logits + i * in.actions;
    float* grad = grad_logits + i * in.actions;
    const float log_normaliser = in.log_normaliser[i];
    const double entropy = RowEntropy(logits, in.actions, log_normaliser, grad);
    const double behaviour = coefficients.ppo_clip > 0 ? in.behaviour_log_prob[i] : 0.0;
    const RowLoss row = PolicyLoss(static_cast<double>(logits[in.action[i]]) - log_normaliser,
                                   behaviour, in.advantage[i], coefficients.ppo_clip);
    const double error = static_cast<double>(in.value[i]) - in.target[i];
    loss.policy += weight * row.policy;
    loss.entropy += weight * entropy;
    loss.value += weight * 0.5 * error * error;
    grad_value[i] = static_cast<float>(weight * coefficients.value_coef * error);
    // d pi(action) / d logit_a = [a = action] - p_a;  d entropy / d logit_a = -p_a (log p_a +
    // entropy)
    for (int a = 0; a < in.actions; ++a) {
      const double p = grad[a];
      const double log_prob = p > 0 ? static_cast<double>(logits[a]) - log_normaliser : 0.0;
      const double chosen = a == in.action[i] ? 1.0 : 0.0;
      grad[a] = static_cast<float>(weight * (row.policy_slope * (chosen - p) +
                                             coefficients.entropy_coef * p * (log_prob + entropy)));
    }
  }
  loss.total =
      loss.policy + coefficients.value_coef * loss.value - coefficients.entropy_coef * loss.entropy;
  return loss;
}

}  // namespace tetrion
