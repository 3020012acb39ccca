#pragma once

#include <cstdint>

#include "lib/replay/selectors/selector.h"

namespace tetrion {

// Keeps writing and sampling in step: one formula over a selector's counters with two bounds, after
// Reverb's rate limiter (Cassirer et al., 2021).
//
//   diff = samples_per_insert * inserted - drawn
//
//   writing   while size < min_size, or diff < max_diff
//   sampling  while size >= min_size, and diff stays >= min_diff
//
// A value; the gate asks it under its mutex. Writer and reader would wait for each other without
// end where a draw takes more than max_diff - min_diff, or where fewer than min_size items fit:
// the caller's settings rule both out.
class Limiter {
 public:
  struct Config {
    double samples_per_insert = 1.0;
    double min_diff = 0.0;
    double max_diff = 0.0;
    std::int64_t min_size = 1;  // items before sampling starts
  };
  // CHECKs that samples_per_insert is positive and that the bounds are in order.
  explicit Limiter(const Config& config);

  // Neither writer nor reader ever waits for the other.
  static Limiter Unlimited();
  // Writing while fewer than `most` items have not been drawn yet; sampling of what is there.
  static Limiter UndrawnItems(std::int64_t most);
  // `samples_per_insert` draws for every item inserted after the first `min_size`. The reader may
  // be `ahead` draws in front of that, the writer `behind` draws.
  static Limiter SamplesPerInsert(double samples_per_insert, std::int64_t min_size, double ahead,
                                  double behind);

  // The reader's bound as it is; the writer never waits.
  Limiter WithoutWriterBound() const;

  bool MayInsert(const ItemCounts& counts) const;
  // May `count` more items be drawn?
  bool MaySample(const ItemCounts& counts, std::int64_t count) const;

 private:
  double Diff(const ItemCounts& counts) const;

  Config config_;
};

}  // namespace tetrion
