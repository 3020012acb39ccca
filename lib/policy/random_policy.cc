#include "lib/policy/random_policy.h"

#include <bit>
#include <cmath>

#include "lib/core/check.h"
#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

constexpr std::int32_t kMaskBits = 64;

// Number of the `index`-th set bit of `mask`, from 0.
std::int32_t SetBit(std::uint64_t mask, std::uint32_t index) {
  for (std::uint32_t i = 0; i < index; ++i) mask &= mask - 1;
  return std::countr_zero(mask);
}

}  // namespace

RandomPolicy::RandomPolicy(std::uint64_t seed, const ActionSpec& action)
    : seed_(seed),
      count_(static_cast<std::uint32_t>(action.count)),
      all_mask_(action.count < kMaskBits ? (std::uint64_t{1} << action.count) - 1
                                         : ~std::uint64_t{0}) {
  TETRION_CHECK(action.count > 0, "a policy needs actions");
  TETRION_CHECK(!action.has_mask || action.count <= kMaskBits, "masks cover at most 64 actions");
}

ActResult RandomPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  for (int i = 0; i < in.n; ++i) {
    const std::uint64_t mask = in.masks != nullptr ? in.masks[i] & all_mask_ : 0;
    const std::uint32_t legal =
        in.masks != nullptr ? static_cast<std::uint32_t>(std::popcount(mask)) : count_;
    const bool acts = legal > 0 && (in.flags[i] & kIsLast) == 0;
    out.action[i] = 0;
    out.log_prob[i] = 0.0F;
    if (out.value != nullptr) out.value[i] = 0.0F;
    if (!acts) continue;
    const PhiloxBlock draw =
        PhiloxDraw(seed_, in.token_ids[i], in.steps[i], PhiloxPurpose::kActions);
    const std::uint32_t pick = BoundedDraw(draw.word[0], legal);
    out.action[i] = in.masks != nullptr ? SetBit(mask, pick) : static_cast<std::int32_t>(pick);
    out.log_prob[i] = -std::log(static_cast<float>(legal));
  }
  return ActResult::kOk;
}

LoadResult RandomPolicy::LoadWeights(std::span<const std::byte>, std::uint32_t version) {
  version_ = version;
  return LoadResult::kLoaded;
}

}  // namespace tetrion
