#pragma once

#include <cmath>

#include "lib/core/host_device.h"

namespace tetrion {

// The logit of a legal action in the mixture of softmax and the uniform distribution over the
// `legal` actions, which has `share`: policies on CPU and device act by it.
TETRION_HOST_DEVICE inline float MixedLogit(float logit, float log_normaliser, double share,
                                            int legal) {
  const double p = std::exp(static_cast<double>(logit - log_normaliser));
  return static_cast<float>(std::log((1 - share) * p + share / legal));
}

}  // namespace tetrion
