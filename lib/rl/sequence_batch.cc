#include "lib/rl/sequence_batch.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/frame/row_layout.h"
#include "lib/rl/possible_actions.h"

namespace tetrion {
namespace {

constexpr std::int32_t kNoAction = -1;

}  // namespace

SequenceBatch::SequenceBatch(const EnvSpec& env, int step_count, int lane_count,
                             const LatentSpec& latents)
    : steps(step_count), lanes(lane_count) {
  const auto b = static_cast<std::size_t>(lanes);
  const std::size_t rows = static_cast<std::size_t>(steps + 1) * b;
  view.resize(rows * static_cast<std::size_t>(env.obs.view_floats));
  for (auto* column : {&is_first, &is_last, &is_terminal, &is_idle}) column->resize(rows - b);
  prev_action.resize(rows - b);
  reward.resize(rows - b);
  deter.resize(b * latents.deter);
  stoch.resize(b * latents.stoch);
  valid.resize(b);
  row_action_.resize(rows);
  row_reward_.resize(rows);
  row_flags_.resize(rows);
}

void SequenceBatch::Fill(const EnvSpec& env, const TrainBatch& batch) {
  TETRION_CHECK(batch.steps() == steps && batch.lanes() == lanes,
                "the source's batches must keep the trainer's shape");
  batch.Gather(0, lanes,
               {.obs = &env.obs,
                .view = view.data(),
                .action = row_action_.data(),
                .reward = row_reward_.data(),
                .flags = row_flags_.data()});
  CheckActions(row_action_, env.action.count);
  batch.GatherLatents({.lanes = lanes, .rows = 1},
                      {.deter = deter.data(), .stoch = stoch.data(), .valid = valid.data()});
  const auto b = static_cast<std::size_t>(lanes);
  for (std::size_t cell = 0; cell < prev_action.size(); ++cell) {
    const std::uint8_t flags = row_flags_[cell + b];
    // Behind an end something new begins; also where a lane idles, which no row calls first.
    const bool begins = (flags & kIsFirst) != 0 || (row_flags_[cell] & kIsLast) != 0;
    is_first[cell] = begins ? 1 : 0;
    is_last[cell] = (flags & kIsLast) != 0 ? 1 : 0;
    is_terminal[cell] = (flags & kTerminated) != 0 ? 1 : 0;
    is_idle[cell] = is_first[cell] != 0 && is_last[cell] != 0 ? 1 : 0;
    const bool continues = is_first[cell] == 0 && (cell >= b || valid[cell] != 0);
    prev_action[cell] = continues ? row_action_[cell] : kNoAction;
    reward[cell] = row_reward_[cell + b];
  }
}

bool SequenceBatch::AllIdle() const {
  return std::ranges::find(is_idle, std::uint8_t{0}) == is_idle.end();
}

}  // namespace tetrion
