#pragma once

#include <span>
#include <vector>

namespace tetrion {

inline constexpr double kLowReturns = 0.05, kHighReturns = 0.95;  // percentiles of the range
inline constexpr double kLeastReturnScale = 1.0;                  // small returns are not blown up

// The q-th part of `values` (0..1) in order, between two values in proportion. Not empty; their
// order changes.
double Percentile(std::span<float> values, double q);

// What advantages are divided by: the range from the 5th to the 95th percentile of the returns, as
// a moving average from 0, and at least 1.
class ReturnScale {
 public:
  struct Range {
    float low = 0, high = 0;
  };

  // `rate`: share of a batch in the moving average.
  explicit ReturnScale(double rate) : rate_(rate) {}

  // `returns` are finite and not empty.
  void Update(std::span<const float> returns);
  double scale() const;

  const Range& range() const { return range_; }
  void set_range(const Range& range) { range_ = range; }

 private:
  const double rate_;
  Range range_;
  std::vector<float> sorted_;
};

}  // namespace tetrion
