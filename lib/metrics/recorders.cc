#include "lib/metrics/recorders.h"

#include <algorithm>
#include <cmath>

#include "lib/core/check.h"

namespace tetrion {

HotHistogram::HotHistogram(std::span<const double> bounds) : bounds_(bounds) {
  TETRION_CHECK(bounds.size() <= kMaxBounds, "too many histogram bounds");
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    TETRION_CHECK(bounds[i - 1] < bounds[i], "histogram bounds must ascend");
  }
}

void HotHistogram::Observe(double value) {
  ObserveMany(value, 1);
}

std::size_t HotHistogram::BucketOf(double value) const {
  return static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) -
                                  bounds_.begin());
}

void HotHistogram::ObserveMany(double value, std::uint64_t times) {
  if (std::isnan(value) || times == 0) return;
  Add(BucketOf(value), times);
  sum_.store(sum_.load(std::memory_order_relaxed) + value * static_cast<double>(times),
             std::memory_order_relaxed);
}

}  // namespace tetrion
