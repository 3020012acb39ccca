#pragma once

#include <cmath>
#include <cstdint>

#include "lib/core/host_device.h"

namespace tetrion {

// The distribution over actions that masked logits mean, for code on CPU and device alike. `logits`
// is a pointer to [count] f32, or what gives logit a for logits[a] where they lie in another way.
// V-trace on the CPU takes many rows at once, acting and training: DenseKernels::softmax.

// Logit of an illegal action: finite, so that no arithmetic meets infinity, and so low that its
// probability is exactly 0 in f32. Logits at or below half of it have probability 0.
inline constexpr float kMaskedLogit = -1e9F;

// log sum exp of `logits` [count]; NaN or infinity when a logit is.
template <typename Logits>
TETRION_HOST_DEVICE inline float LogNormaliser(const Logits& logits, int count) {
  float highest = logits[0];
  for (int a = 1; a < count; ++a) {
    const float logit = logits[a];
    if (highest < logit) highest = logit;
  }
  float sum = 0.0F;
  for (int a = 0; a < count; ++a) sum += std::exp(logits[a] - highest);
  return highest + std::log(sum);
}

// The action whose share of the unit interval holds `uniform` in [0, 1): inverse of the cumulative
// distribution in action order, of probabilities [count]. Never an action of probability 0 while
// another has more.
inline std::int32_t SampleProbability(const float* probability, int count, double uniform) {
  double cumulative = 0;
  std::int32_t last_possible = 0;
  for (int a = 0; a < count; ++a) {
    if (!(probability[a] > 0.0F)) continue;
    cumulative += probability[a];
    last_possible = a;
    if (uniform < cumulative) return a;
  }
  return last_possible;  // rounding left the sum just below 1
}

// The same of logits.
template <typename Logits>
TETRION_HOST_DEVICE inline std::int32_t SampleCategorical(const Logits& logits, int count,
                                                          float log_normaliser, double uniform) {
  double cumulative = 0;
  std::int32_t last_possible = 0;
  for (int a = 0; a < count; ++a) {
    const float logit = logits[a];
    if (logit <= kMaskedLogit / 2) continue;
    cumulative += std::exp(static_cast<double>(logit) - static_cast<double>(log_normaliser));
    last_possible = a;
    if (uniform < cumulative) return a;
  }
  return last_possible;  // rounding left the sum just below 1
}

// Least entropy, in nats, that (1 - share) p + share / count can have: p certain of one of `count`
// actions.
inline double LeastEntropy(double share, int count) {
  if (share <= 0 || count < 2) return 0;
  const double other = share / count, chosen = 1 - share + other;
  return -chosen * std::log(chosen) - (count - 1) * other * std::log(other);
}

// The most probable action, the lowest among equals.
template <typename Logits>
TETRION_HOST_DEVICE inline std::int32_t MostProbable(const Logits& logits, int count) {
  std::int32_t best = 0;
  for (int a = 1; a < count; ++a) {
    if (logits[best] < logits[a]) best = a;
  }
  return best;
}

}  // namespace tetrion
