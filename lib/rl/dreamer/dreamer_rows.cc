#include "lib/rl/dreamer/dreamer_rows.h"

#include <algorithm>
#include <cstddef>

#include "lib/core/finite.h"

namespace tetrion {

DreamerRows::DreamerRows(const DreamerShape& shape, SequenceBatch& batch, torch::Device device,
                         bool every_row_may_begin)
    : shape_(shape),
      batch_(batch),
      every_row_may_begin_(every_row_may_begin),
      begins_(static_cast<std::size_t>(batch.steps)) {
  const std::int64_t t = batch.steps, b = batch.lanes;
  context_deter_ = torch::from_blob(batch.deter.data(), {b, shape.size.deter}, torch::kBFloat16);
  host_ = {.view = torch::from_blob(batch.view.data() + b * shape.floats, {t, b, shape.floats}),
           .prev_action = torch::zeros({t, b, shape.actions}),
           .keep = torch::zeros({t, b, 1}),
           .reward = torch::from_blob(batch.reward.data(), {t, b}),
           .alive = torch::zeros({t, b}),
           .not_last = torch::zeros({t, b}),
           .counts = torch::zeros({t, b}),
           .deter = torch::zeros({b, shape.size.deter}),
           .stoch = torch::zeros({b, shape.size.stoch, shape.size.classes})};
  // On the CPU these are the host's own.
  view = host_.view.to(device);
  prev_action = host_.prev_action.to(device);
  keep = host_.keep.to(device);
  reward = host_.reward.to(device);
  alive = host_.alive.to(device);
  not_last = host_.not_last.to(device);
  counts = host_.counts.to(device);
  deter = host_.deter.to(device);
  stoch = host_.stoch.to(device);
}

std::string DreamerRows::NotFinite() const {
  if (!AllFinite(batch_.view)) return "an observation of the batch";
  if (!AllFinite(batch_.reward)) return "a reward of the batch";
  return "";
}

void DreamerRows::Fill() {
  FillHost();
  if (view.is_cpu()) return;
  view.copy_(host_.view);
  prev_action.copy_(host_.prev_action);
  keep.copy_(host_.keep);
  reward.copy_(host_.reward);
  alive.copy_(host_.alive);
  not_last.copy_(host_.not_last);
  counts.copy_(host_.counts);
  deter.copy_(host_.deter);
  stoch.copy_(host_.stoch);
}

void DreamerRows::FillHost() {
  const auto lanes = static_cast<std::size_t>(batch_.lanes);
  std::fill(begins_.begin(), begins_.end(), false);
  host_.prev_action.zero_();
  float* action = host_.prev_action.mutable_data_ptr<float>();
  float* kept = host_.keep.mutable_data_ptr<float>();
  float* lives = host_.alive.mutable_data_ptr<float>();
  float* goes_on = host_.not_last.mutable_data_ptr<float>();
  float* counted = host_.counts.mutable_data_ptr<float>();
  for (std::size_t cell = 0; cell < batch_.reward.size(); ++cell) {
    if (batch_.is_first[cell] != 0) begins_[cell / lanes] = true;
    kept[cell] = batch_.is_first[cell] != 0 ? 0.0F : 1.0F;
    lives[cell] = batch_.is_terminal[cell] != 0 ? 0.0F : 1.0F;
    goes_on[cell] = batch_.is_last[cell] != 0 ? 0.0F : 1.0F;
    counted[cell] = batch_.is_idle[cell] != 0 ? 0.0F : 1.0F;
    if (batch_.prev_action[cell] >= 0) action[batch_.prev_action[cell]] = 1.0F;
    action += shape_.actions;
  }
  host_.deter.copy_(context_deter_);
  host_.stoch.zero_();
  const std::int64_t groups = shape_.size.stoch, classes = shape_.size.classes;
  float* one_hot = host_.stoch.mutable_data_ptr<float>();
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<std::int64_t>(lane);
    if (batch_.valid[lane] == 0) host_.deter[at].zero_();
    for (std::int64_t group = at * groups; group < (at + 1) * groups; ++group) {
      const std::uint8_t index = batch_.stoch[static_cast<std::size_t>(group)];
      if (batch_.valid[lane] != 0 && index < classes) one_hot[group * classes + index] = 1.0F;
    }
  }
}

}  // namespace tetrion
