#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tetrion {

// Times in buckets of at most 1/16 of their value: constant memory, no allocation. One thread.
class LatencyHistogram {
 public:
  void Add(std::int64_t time_ns) {
    ++count_;
    ++bucket_[BucketOf(time_ns > 0 ? static_cast<std::uint64_t>(time_ns) : 0)];
  }
  std::uint64_t count() const { return count_; }
  // The upper edge of the bucket that holds the given share (0 to 1) of the times; 0 without any.
  std::int64_t Quantile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += bucket_[i];
      if (bucket_[i] != 0 && static_cast<double>(seen) >= wanted) return UpperEdge(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned kSubBits = 4;
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  // Below 16 every value has its own bucket, above 16 buckets a power of two.
  static std::size_t BucketOf(std::uint64_t value) {
    if (value < (1U << kSubBits)) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    return ((shift + 1) << kSubBits) + ((value >> shift) & ((1U << kSubBits) - 1));
  }
  static std::int64_t UpperEdge(std::size_t bucket) {
    if (bucket < (1U << kSubBits)) return static_cast<std::int64_t>(bucket);
    const std::size_t shift = (bucket >> kSubBits) - 1;
    const std::uint64_t low = ((1U << kSubBits) + (bucket & ((1U << kSubBits) - 1))) << shift;
    return static_cast<std::int64_t>(low + (1ULL << shift) - 1);
  }

  std::uint64_t count_ = 0;
  std::array<std::uint64_t, kBuckets> bucket_ = {};
};

}  // namespace tetrion
