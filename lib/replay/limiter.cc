#include "lib/replay/limiter.h"

#include <limits>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Limiter::Limiter(const Config& config) : config_(config) {
  TETRION_CHECK(config.samples_per_insert > 0, "samples_per_insert is positive");
  TETRION_CHECK(config.min_diff < config.max_diff, "min_diff lies below max_diff");
}

Limiter Limiter::Unlimited() {
  return Limiter({.min_diff = -kInfinity, .max_diff = kInfinity});
}

Limiter Limiter::UndrawnItems(std::int64_t most) {
  return Limiter({.max_diff = static_cast<double>(most), .min_size = 0});
}

Limiter Limiter::SamplesPerInsert(double samples_per_insert, std::int64_t min_size, double ahead,
                                  double behind) {
  const double first = samples_per_insert * static_cast<double>(min_size);
  return Limiter({.samples_per_insert = samples_per_insert,
                  .min_diff = first - ahead,
                  .max_diff = first + behind,
                  .min_size = min_size});
}

Limiter Limiter::WithoutWriterBound() const {
  Config config = config_;
  config.max_diff = kInfinity;
  return Limiter(config);
}

bool Limiter::MayInsert(const ItemCounts& counts) const {
  return counts.size < config_.min_size || Diff(counts) < config_.max_diff;
}

bool Limiter::MaySample(const ItemCounts& counts, std::int64_t count) const {
  return counts.size >= config_.min_size &&
         Diff(counts) - static_cast<double>(count) >= config_.min_diff;
}

double Limiter::Diff(const ItemCounts& counts) const {
  return config_.samples_per_insert * static_cast<double>(counts.inserted) -
         static_cast<double>(counts.drawn);
}

}  // namespace tetrion
