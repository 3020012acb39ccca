#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "lib/core/align.h"

namespace tetrion {

// Recorders are what hot paths touch: plain relaxed stores on a cache line of their own, no lock,
// no read-modify-write. Owned by MetricsRegistry, which reads them at scrape time.
//
// Thread role: one writer per counter and per histogram (ask the registry for another `writer`
// number for a second thread); gauges take any writer, the last one wins. Any thread may read.

// A sum that only grows: steps, rows, seconds.
class alignas(kCacheLinePairBytes) HotCounter {
 public:
  void Add(double amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void Increment() { Add(1.0); }
  // Brings the sum up to a total that is counted elsewhere and never goes down.
  void RaiseTo(double total) { Add(total - Value()); }
  double Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0.0};
};

// A value that goes up and down.
class alignas(kCacheLinePairBytes) HotGauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  double Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0.0};
};

// Counts per bucket. `bounds` are ascending inclusive upper bounds; what lies above the last falls
// into the +Inf bucket. A reader may see a sum one call ahead of or behind the counts.
class alignas(kCacheLinePairBytes) HotHistogram {
 public:
  static constexpr std::size_t kMaxBounds = 23;

  // `bounds` must outlive the histogram (the catalog's are static).
  explicit HotHistogram(std::span<const double> bounds);

  // NaN is not counted.
  void Observe(double value);
  // Observes the same value `times` times: a batch of equal waits.
  void ObserveMany(double value, std::uint64_t times);
  // Observes get(item), a double, of each item.
  template <typename Item, typename Get>
  void ObserveEach(std::span<const Item> items, Get get) {
    std::array<std::uint64_t, kMaxBounds + 1> counts{};
    double sum = sum_.load(std::memory_order_relaxed);
    // Neighbours are mostly of one bucket, (lower, upper].
    std::size_t bucket = 0;
    double lower = LowerOf(0), upper = UpperOf(0);
    std::uint64_t in_bucket = 0;
    for (const Item& item : items) {
      const double value = get(item);
      if (!(value > lower && value <= upper)) {
        if (std::isnan(value)) continue;
        counts[bucket] += std::exchange(in_bucket, 0);
        bucket = BucketOf(value);
        lower = LowerOf(bucket);
        upper = UpperOf(bucket);
      }
      ++in_bucket;
      sum += value;
    }
    counts[bucket] += in_bucket;
    for (std::size_t i = 0; i <= bounds_.size(); ++i) Add(i, counts[i]);
    sum_.store(sum, std::memory_order_relaxed);
  }

  std::span<const double> bounds() const { return bounds_; }
  // Count of bucket i, not cumulative; i == bounds().size() is +Inf.
  std::uint64_t Count(std::size_t i) const { return counts_[i].load(std::memory_order_relaxed); }
  double Sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  // Not for NaN.
  std::size_t BucketOf(double value) const;
  double LowerOf(std::size_t bucket) const {
    return bucket == 0 ? -std::numeric_limits<double>::infinity() : bounds_[bucket - 1];
  }
  double UpperOf(std::size_t bucket) const {
    return bucket == bounds_.size() ? std::numeric_limits<double>::infinity() : bounds_[bucket];
  }
  // One writer: load and store need no read-modify-write.
  void Add(std::size_t bucket, std::uint64_t times) {
    std::atomic<std::uint64_t>& count = counts_[bucket];
    count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
  }

  const std::span<const double> bounds_;
  std::atomic<double> sum_{0.0};
  std::array<std::atomic<std::uint64_t>, kMaxBounds + 1> counts_{};
};

}  // namespace tetrion
