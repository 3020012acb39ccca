#pragma once

#include <cstdint>

namespace tetrion {

// The distribution over actions that masked logits mean; policy and losses share it, so that what
// acted and what is trained agree. Logits at or below kMaskedLogit / 2 have probability 0.

// log sum exp of `logits` [count]; NaN or infinity when a logit is.
float LogNormaliser(const float* logits, int count);

// The action whose share of the unit interval holds `uniform` in [0, 1): inverse of the cumulative
// distribution in action order. Never an action of probability 0 while another has more.
std::int32_t SampleCategorical(const float* logits, int count, float log_normaliser,
                               double uniform);

// The most probable action, the lowest among equals.
std::int32_t MostProbable(const float* logits, int count);

}  // namespace tetrion
