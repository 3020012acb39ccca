#include "lib/policy/random_policy.h"

#include "lib/core/check.h"
#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"
#include "lib/policy/uniform_choice.h"

namespace tetrion {

RandomPolicy::RandomPolicy(std::uint64_t seed, const ActionSpec& action)
    : seed_(seed),
      count_(static_cast<std::uint32_t>(action.count)),
      all_mask_(MaskOfAll(action.count)) {
  TETRION_CHECK(action.count > 0, "a policy needs actions");
  TETRION_CHECK(!action.has_mask || action.count <= kMostMaskedActions,
                "masks cover at most 64 actions");
}

ActResult RandomPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  for (int i = 0; i < in.n; ++i) {
    const std::uint64_t mask = in.masks != nullptr ? in.masks[i] & all_mask_ : 0;
    UniformChoice choice;
    if ((in.flags[i] & kIsLast) == 0) {
      const PhiloxBlock draw =
          PhiloxDraw(seed_, in.token_ids[i], in.steps[i], PhiloxPurpose::kActions);
      choice = in.masks != nullptr ? UniformOfMask(mask, draw.word[0])
                                   : UniformOfAll(count_, draw.word[0]);
    }
    out.action[i] = choice.action;
    out.log_prob[i] = choice.log_prob;
    if (out.value != nullptr) out.value[i] = 0.0F;
  }
  return ActResult::kOk;
}

LoadResult RandomPolicy::LoadWeights(std::span<const std::byte>, std::uint32_t version) {
  version_ = version;
  return LoadResult::kLoaded;
}

}  // namespace tetrion
