#pragma once

#include <cstdint>

namespace tetrion {

// The caller chooses every one: what is left out is 0.
struct ActorCriticCoefficients {
  double value_coef;    // c_v
  double entropy_coef;  // c_e
  double ppo_clip;      // 0: plain policy gradient
};

// N = T*B rows with actions; A actions. Rows with flag is_last have weight 0.
struct ActorCriticInput {
  std::int64_t rows = 0;                      // N
  int actions = 0;                            // A
  const float* logits = nullptr;              // [N, A] f32, masked, no infinity
  const float* log_normaliser = nullptr;      // [N] f32, log sum exp of the logits
  const float* entropy = nullptr;             // [N] f32, of the rows' probabilities, in nats
  const float* value = nullptr;               // [N] f32
  const std::int32_t* action = nullptr;       // [N]
  const std::uint8_t* flags = nullptr;        // [N] RowFlags
  const float* behaviour_log_prob = nullptr;  // [N] f32; read with ppo_clip only
  const float* target = nullptr;              // [N] f32, constant
  const float* advantage = nullptr;           // [N] f32, constant
};

// What some rows add to the means over all rows that are not is_last; the parts of a batch add up
// to these.
struct ActorCriticLoss {
  double policy = 0;  // -A * pi, or the clipped surrogate
  double value = 0;   // 0.5 * (v - V)^2
  double entropy = 0;
  double total = 0;  // policy + c_v * value - c_e * entropy

  void Add(const ActorCriticLoss& part);
};

// How many rows are not is_last.
std::int64_t CountTrained(const ActorCriticInput& in);

// How well the values of rows that are not is_last fit their targets; 0 without such rows.
struct ValueFit {
  double explained_variance = 0;  // 1 - Var(V - v) / Var(V); 0 where all targets are one
  double target_square = 0;       // mean of V^2
};
ValueFit MeasureFit(const ActorCriticInput& in);

// What rows [begin, end) add to the loss, and its gradient: these rows of grad_logits [N, A], which
// come as the rows' probabilities (DenseKernels::softmax), leave as the gradient; those of
// grad_value [N] are overwritten. `trained` is CountTrained; with 0 all are zeros. Pure, no
// allocation; threads may share the rows. With ppo_clip e > 0 the policy part is -min(r A, clip(r,
// 1-e, 1+e) A), r = exp(pi - mu) (Schulman et al., PPO, 2017), for which `advantage` must not carry
// an importance weight.
ActorCriticLoss ComputeActorCriticLoss(const ActorCriticCoefficients& coefficients,
                                       const ActorCriticInput& in, std::int64_t begin,
                                       std::int64_t end, std::int64_t trained, float* grad_logits,
                                       float* grad_value);

}  // namespace tetrion
