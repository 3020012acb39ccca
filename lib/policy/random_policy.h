#pragma once

#include <cstdint>

#include "lib/frame/specs.h"
#include "lib/policy/policy.h"

namespace tetrion {

// Chooses uniformly among the legal actions. The choice is a pure function of (seed, token, step),
// so lane count and timing do not change it. Where is_last, or where no action is legal, it writes
// action 0 with log-probability 0. Values are 0. One instance per worker thread; allocates nothing.
class RandomPolicy final : public Policy {
 public:
  // CHECKs that there is an action, and at most 64 where the environment has masks.
  RandomPolicy(std::uint64_t seed, const ActionSpec& action);

  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  // Has no weights: accepts anything and remembers the version.
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override;
  std::uint32_t version() const override { return version_; }

 private:
  const std::uint64_t seed_;
  const std::uint32_t count_;
  const std::uint64_t all_mask_;  // bits of the actions that exist
  std::uint32_t version_ = 0;
};

}  // namespace tetrion
