#include "lib/rl/dreamer/dreamer_rows.h"

#include <algorithm>
#include <cstddef>

namespace tetrion {

DreamerRows::DreamerRows(const DreamerShape& shape, SequenceBatch& batch)
    : shape_(shape), batch_(batch), begins_(static_cast<std::size_t>(batch.steps)) {
  const std::int64_t t = batch.steps, b = batch.lanes;
  view = torch::from_blob(batch.view.data() + b * shape.floats, {t, b, shape.floats});
  reward = torch::from_blob(batch.reward.data(), {t, b});
  context_deter_ = torch::from_blob(batch.deter.data(), {b, shape.size.deter}, torch::kBFloat16);
  prev_action = torch::zeros({t, b, shape.actions});
  keep = torch::zeros({t, b, 1});
  alive = torch::zeros({t, b});
  not_last = torch::zeros({t, b});
  deter = torch::zeros({b, shape.size.deter});
  stoch = torch::zeros({b, shape.size.stoch, shape.size.classes});
}

void DreamerRows::Fill() {
  const auto lanes = static_cast<std::size_t>(batch_.lanes);
  std::fill(begins_.begin(), begins_.end(), false);
  prev_action.zero_();
  float* action = prev_action.mutable_data_ptr<float>();
  float* kept = keep.mutable_data_ptr<float>();
  float* lives = alive.mutable_data_ptr<float>();
  float* goes_on = not_last.mutable_data_ptr<float>();
  for (std::size_t cell = 0; cell < batch_.reward.size(); ++cell) {
    if (batch_.is_first[cell] != 0) begins_[cell / lanes] = true;
    kept[cell] = batch_.is_first[cell] != 0 ? 0.0F : 1.0F;
    lives[cell] = batch_.is_terminal[cell] != 0 ? 0.0F : 1.0F;
    goes_on[cell] = batch_.is_last[cell] != 0 ? 0.0F : 1.0F;
    if (batch_.prev_action[cell] >= 0) action[batch_.prev_action[cell]] = 1.0F;
    action += shape_.actions;
  }
  deter.copy_(context_deter_);
  stoch.zero_();
  const std::int64_t groups = shape_.size.stoch, classes = shape_.size.classes;
  float* one_hot = stoch.mutable_data_ptr<float>();
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<std::int64_t>(lane);
    if (batch_.valid[lane] == 0) deter[at].zero_();
    for (std::int64_t group = at * groups; group < (at + 1) * groups; ++group) {
      const std::uint8_t index = batch_.stoch[static_cast<std::size_t>(group)];
      if (batch_.valid[lane] != 0 && index < classes) one_hot[group * classes + index] = 1.0F;
    }
  }
}

}  // namespace tetrion
