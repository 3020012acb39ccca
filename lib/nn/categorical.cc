#include "lib/nn/categorical.h"

#include <algorithm>
#include <cmath>

#include "lib/nn/network.h"

namespace tetrion {

float LogNormaliser(const float* logits, int count) {
  const float highest = *std::max_element(logits, logits + count);
  float sum = 0.0F;
  for (int a = 0; a < count; ++a) sum += std::exp(logits[a] - highest);
  return highest + std::log(sum);
}

std::int32_t SampleCategorical(const float* logits, int count, float log_normaliser,
                               double uniform) {
  double cumulative = 0;
  std::int32_t last_possible = 0;
  for (int a = 0; a < count; ++a) {
    if (logits[a] <= kMaskedLogit / 2) continue;
    cumulative += std::exp(static_cast<double>(logits[a]) - static_cast<double>(log_normaliser));
    last_possible = a;
    if (uniform < cumulative) return a;
  }
  return last_possible;  // rounding left the sum just below 1
}

std::int32_t MostProbable(const float* logits, int count) {
  return static_cast<std::int32_t>(std::max_element(logits, logits + count) - logits);
}

}  // namespace tetrion
