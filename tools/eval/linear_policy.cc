#include "tools/eval/linear_policy.h"

#include <bit>

#include "lib/core/error.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

using Layout = AfterstatesLayout;

constexpr int kQueueSize = 1;            // of the view that the rule makes itself
constexpr double kEndsTheGame = -1.0e6;  // below every other score

}  // namespace

double LinearScore(const float* row) {
  double heights = 0;
  for (int column = 0; column < kTetrisColumns; ++column) heights += row[column];
  const double score = LinearPolicy::kHeights * heights / Layout::kHeightScale +
                       LinearPolicy::kHoles * row[11] / Layout::kHolesScale +
                       LinearPolicy::kBumpiness * row[12] / Layout::kBumpinessScale +
                       LinearPolicy::kLines * row[13] / Layout::kLinesScale;
  return row[15] == 0 ? score : score + kEndsTheGame;
}

LinearPolicy::LinearPolicy(const EnvSpec& env)
    : record_bytes_(env.obs.record_bytes),
      view_(static_cast<std::size_t>(Layout::Floats(kQueueSize))) {
  if (env.name != "tetris-placement") {
    throw Error(ExitCode::kUsage,
                "--policy linear is a rule for the placements of "
                "tetris-placement, this run plays " +
                    env.name);
  }
}

ActResult LinearPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  for (int i = 0; i < in.n; ++i) {
    ExpandAfterstates(in.records + static_cast<std::size_t>(i) * record_bytes_, 1, kQueueSize,
                      view_.data());
    std::int32_t best = 0;
    double best_score = 0;
    bool any = false;
    for (std::uint64_t left = in.masks[i]; left != 0; left &= left - 1) {
      const int action = std::countr_zero(left);
      const double score = LinearScore(view_.data() + action * Layout::kRowFloats);
      if (any && score <= best_score) continue;
      any = true;
      best = action;
      best_score = score;
    }
    out.action[i] = best;
    out.log_prob[i] = 0.0F;
    if (out.value != nullptr) out.value[i] = 0.0F;
  }
  return ActResult::kOk;
}

LoadResult LinearPolicy::LoadWeights(std::span<const std::byte>, std::uint32_t version) {
  version_ = version;
  return LoadResult::kLoaded;
}

}  // namespace tetrion
