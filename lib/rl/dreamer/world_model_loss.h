#pragma once

#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/dreamer_draws.h"
#include "lib/rl/dreamer/dreamer_rows.h"
#include "lib/rl/dreamer/dreamer_settings.h"

namespace tetrion {

// What the world model made of a batch's rows, and how well. Gradients reach encoder, recurrent
// core, posterior, prior, decoder and the heads of reward and continue.
struct WorldModelLoss {
  torch::Tensor deter;             // [T, B, D]
  torch::Tensor stoch;             // [T, B, S, C] one-hot samples of the posterior
  torch::Tensor feature;           // [T, B, D + Z]
  torch::Tensor posterior, prior;  // [T, B, S, C] log-probabilities
  // Means over the rows that count, not weighed yet.
  torch::Tensor reconstruction, reward, cont, dynamics, representation;
};

// Follows the rows with the posterior, row by row from the state before the first one. `sample` is
// called once a row, with [B, S, C].
WorldModelLoss ComputeWorldModelLoss(const DreamerModel& model, const DreamerSettings& settings,
                                     const DreamerRows& rows, const OneHotSampler& sample);

}  // namespace tetrion
