#include "lib/metrics/recorders.h"

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

void HotHistogram::ObserveMany(double value, std::uint64_t times) {
  if (std::isnan(value) || times == 0) return;
  std::size_t bucket = 0;
  while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
  // One writer: load and store need no read-modify-write.
  std::atomic<std::uint64_t>& count = counts_[bucket];
  count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
  sum_.store(sum_.load(std::memory_order_relaxed) + value * static_cast<double>(times),
             std::memory_order_relaxed);
}

}  // namespace tetrion
