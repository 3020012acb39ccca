#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/policy/policy.h"

namespace tetrion {

// A fixed linear rule for tetris-placement over the numbers of the view `afterstates`: the baseline
// that a trained policy has to beat, since it has the same perfect look at every placement's
// outcome and learns nothing. It takes the legal placement of the greatest
//
//   0.760666 * lines - 0.510066 * sum of heights - 0.35663 * holes - 0.184483 * bumpiness
//
// (weights of Yiyuan Lee, "Tetris AI - The (Near) Perfect Bot", 2013), of equal ones the first, and
// one that ends the game only when all do. Preview and random source are not looked at. One thread.
class LinearPolicy final : public Policy {
 public:
  static constexpr double kLines = 0.760666, kHeights = -0.510066, kHoles = -0.35663,
                          kBumpiness = -0.184483;

  // `env` is a tetris-placement whose records begin with the compact one; any view. Throws
  // Error(kUsage) for another environment.
  explicit LinearPolicy(const EnvSpec& env);

  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  // Has no weights: accepts anything and remembers the version.
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override;
  std::uint32_t version() const override { return version_; }

 private:
  const std::size_t record_bytes_;
  std::vector<float> view_;  // of one record
  std::uint32_t version_ = 0;
};

// How good the rule finds one row of the view, 16 floats.
double LinearScore(const float* row);

}  // namespace tetrion
