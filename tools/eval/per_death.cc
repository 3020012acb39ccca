#include "tools/eval/per_death.h"

#include <cmath>
#include <limits>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr double kLower = 0.025, kUpper = 0.975;  // of a two-sided interval of 95%
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Probability of fewer than `events` events where `mean` are expected.
double PoissonBelow(int events, double mean) {
  double sum = 0;
  for (int i = 0; i < events; ++i) sum += std::exp(i * std::log(mean) - mean - std::lgamma(i + 1));
  return sum;
}

}  // namespace

double ChiSquaredQuantile(double probability, int half_freedom) {
  TETRION_CHECK(probability > 0 && probability < 1 && half_freedom > 0, "a quantile of something");
  // P(chi2 <= x) = 1 - P(fewer than half_freedom events where x / 2 are expected).
  double low = 0, high = 2.0 * half_freedom;
  while (1 - PoissonBelow(half_freedom, high / 2) < probability) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (1 - PoissonBelow(half_freedom, middle / 2) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

PerDeath PerDeathOf(double total, int deaths, bool stopped_at_death) {
  const int more = stopped_at_death ? deaths : deaths + 1;
  if (deaths == 0) {
    return {kInfinite, 2 * total / ChiSquaredQuantile(kUpper, more), kInfinite};
  }
  return {total / deaths, 2 * total / ChiSquaredQuantile(kUpper, more),
          2 * total / ChiSquaredQuantile(kLower, deaths)};
}

}  // namespace tetrion
