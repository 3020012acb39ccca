#pragma once

#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/dreamer_draws.h"
#include "lib/rl/dreamer/dreamer_rows.h"
#include "lib/rl/dreamer/dreamer_settings.h"
#include "lib/rl/dreamer/world_model_loss.h"

namespace tetrion {

// H steps imagined from each of N states; no gradient enters the world model.
struct Imagination {
  torch::Tensor feature;    // [H+1, N, D + Z]
  torch::Tensor action;     // [H, N, A] one-hot
  torch::Tensor log_probs;  // [H, N, A] of the actor; carry its gradient
  // [N] 0 where a start is terminal, else 1: how much starts count, instead of what the continue
  // head says of them; undefined: as it says.
  torch::Tensor start_alive;
};

// deter [N, D], stoch [N, S, C]. `sample` is called per step with the actor's [N, A], then with the
// prior's [N, S, C].
Imagination Imagine(const DreamerModel& model, const torch::Tensor& deter,
                    const torch::Tensor& stoch, int horizon, const OneHotSampler& sample);

// What imagined states are worth.
struct ImaginedWorth {
  torch::Tensor value_logits;         // [H, N, 255]; carry the critic's gradient
  torch::Tensor value, slow, reward;  // [H, N] predictions; reward is the arrived-at state's
  torch::Tensor baseline;             // [H, N] what returns are compared with
  torch::Tensor returns;              // [H, N]
  torch::Tensor weight;               // [H, N] chance that the state is reached, discounted
};
ImaginedWorth ComputeImaginedWorth(const DreamerModel& model, const DreamerHead& slow,
                                   const DreamerSettings& settings, const Imagination& imagined);

// Means over the rows that count and over what is imagined from them; not weighed with each other
// yet. Gradients reach actor and critic, and through
// `replay_value` what made the features of the rows.
struct BehaviourLoss {
  torch::Tensor policy, value, replay_value;
  torch::Tensor entropy;  // of the actor, without gradient
};
// `scale`, a scalar, divides the advantages. The imagination began at all rows of `world`, in their
// order.
BehaviourLoss ComputeBehaviourLoss(const DreamerModel& model, const DreamerHead& slow,
                                   const DreamerSettings& settings, const DreamerRows& rows,
                                   const WorldModelLoss& world, const Imagination& imagined,
                                   const ImaginedWorth& worth, const torch::Tensor& scale);

}  // namespace tetrion
