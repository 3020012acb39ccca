#pragma once

#include <cmath>

#include "lib/core/host_device.h"

namespace tetrion {

// Least chance of a class in a mixture whose share of the uniform distribution is 0, so that its
// logarithm is a number: e^-80, at which the CPU's exponential ends (fast_exp.h). Where nothing is
// differentiated the logarithm itself is bounded.
inline constexpr float kLeastChance = 1.8048513878e-35F;
inline constexpr float kLeastLogChance = -80.0F;

// The logit of a legal action in the mixture of softmax and the uniform distribution over the
// `legal` actions, which has `share`: policies on CPU and device act by it. Finite where the logits
// are, however certain the softmax is; NaN stays NaN.
TETRION_HOST_DEVICE inline float MixedLogit(float logit, float log_normaliser, double share,
                                            int legal) {
  const double p = std::exp(static_cast<double>(logit - log_normaliser));
  const double mixed = (1 - share) * p + share / legal;
  return mixed < kLeastChance ? kLeastLogChance : static_cast<float>(std::log(mixed));
}

}  // namespace tetrion
