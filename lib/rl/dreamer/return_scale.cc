#include "lib/rl/dreamer/return_scale.h"

#include <algorithm>
#include <cstddef>

#include "lib/core/check.h"

namespace tetrion {

double Percentile(std::span<float> values, double q) {
  TETRION_CHECK(!values.empty(), "a percentile is that of some values");
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  if (below + 1 == values.size()) return *at;
  const double above = *std::min_element(at + 1, values.end());
  return *at + (place - static_cast<double>(below)) * (above - *at);
}

void ReturnScale::Update(std::span<const float> returns) {
  sorted_.assign(returns.begin(), returns.end());
  const auto follow = [this](float& mean, double value) {
    mean = static_cast<float>((1.0 - rate_) * mean + rate_ * value);
  };
  follow(range_.low, Percentile(sorted_, kLowReturns));
  follow(range_.high, Percentile(sorted_, kHighReturns));
}

double ReturnScale::scale() const {
  return std::max(kLeastReturnScale, static_cast<double>(range_.high) - range_.low);
}

}  // namespace tetrion
