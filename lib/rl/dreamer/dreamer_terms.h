#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/dreamer_draws.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/dreamer/dreamer_rows.h"
#include "lib/rl/dreamer/dreamer_settings.h"

namespace tetrion {

// A number that an update computes besides its gradient.
struct DreamerNumber {
  DreamerFigure figure;
  const char* part = nullptr;  // its name in messages; null where the number may be anything
};

// In this order; those that must be finite come first, in the order of their computation.
inline constexpr std::array kDreamerNumbers = {
    DreamerNumber{"reconstruction_loss", "the reconstruction loss"},
    DreamerNumber{"reward_loss", "the reward loss"},
    DreamerNumber{"continue_loss", "the continue loss"},
    DreamerNumber{"dynamics_loss", "the dynamics loss"},
    DreamerNumber{"representation_loss", "the representation loss"},
    DreamerNumber{"imagined_return", "an imagined return"},
    DreamerNumber{"policy_loss", "the policy loss"},
    DreamerNumber{"value_loss", "the value loss"},
    DreamerNumber{"replay_value_loss", "the replay value loss"},
    DreamerNumber{"prior_entropy"},
    DreamerNumber{"posterior_entropy"},
    DreamerNumber{"imagined_reward"},
    DreamerNumber{"imagined_value"},
    DreamerNumber{"entropy"},
    DreamerNumber{"return_scale"},
};
inline constexpr std::int64_t kMustBeFinite = 9;

// What an update minimises, and what else it computes: means over the rows that count. Nothing of
// it has been read by the host.
struct DreamerTerms {
  torch::Tensor total;                  // carries the gradient
  torch::Tensor numbers;                // [kDreamerNumbers.size()] f32
  torch::Tensor deter, stoch;           // [T, B, D] bf16, [T, B, S] u8: latents behind the rows
  double observe_s = 0, imagine_s = 0;  // as UpdateStats
};

// Takes in the imagined returns [H, N], less those of starts that do not count; what advantages are
// divided by, a scalar.
using ReturnScaler = std::function<torch::Tensor(const torch::Tensor& returns)>;

DreamerTerms ComputeDreamerTerms(const DreamerModel& model, const DreamerHead& slow,
                                 const DreamerSettings& settings, const DreamerRows& rows,
                                 const OneHotSampler& sample, const ReturnScaler& scale);

// Sets the figures of the numbers, and of their weighed sum, up to the first that had to be finite
// and is not: what that is, or nothing.
std::string ReadDreamerNumbers(const DreamerSettings& settings, std::span<const float> numbers,
                               UpdateStats& stats);

}  // namespace tetrion
