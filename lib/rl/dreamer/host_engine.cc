#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/core/finite.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/rl/dreamer/dreamer_engine.h"
#include "lib/rl/dreamer/dreamer_terms.h"
#include "lib/rl/stage_timer.h"
#include "lib/rl/torch/update_failures.h"

namespace tetrion {
namespace {

using torch::Tensor;

class HostEngine final : public DreamerEngine {
 public:
  HostEngine(const DreamerEngineConfig& config, const DreamerState& state, SequenceBatch& batch,
             std::unique_ptr<GradientSync> sync);

  bool Update(UpdateStats& stats) override;
  LatentColumns latents() override;
  DreamerState Read() const override;
  void Write(const DreamerState& state) override;
  void ReadParameters(std::span<float> out) const override {
    std::copy_n(parameters_.begin(), out.size(), out.begin());
  }

 private:
  bool UpdateInMemory(UpdateStats& stats);
  std::string ComputeTerms(UpdateStats& stats);
  std::string TakeStep(StageTimer& timer, UpdateStats& stats);
  Tensor ScaleOf(const Tensor& returns);
  std::span<const float> critic() const {
    return std::span(parameters_).subspan(critic_.offset, critic_.size);
  }
  void MoveSlowCritic(std::span<const float> towards);

  const DreamerEngineConfig config_;
  const ParameterLayout layout_;
  const DreamerSlice critic_;
  std::vector<float> parameters_, gradients_, slow_parameters_;
  DreamerModel model_;  // on the buffers above, as is the slow critic
  DreamerHead slow_;
  LaProp optimiser_;
  ReturnScale return_scale_;
  const std::unique_ptr<GradientSync> sync_;
  DreamerRows rows_;
  bool has_worked_ = false;  // an update, in this process
  // Buffers, overwritten by every update.
  DreamerTerms terms_;
  std::vector<float> critic_before_, counted_;
};

HostEngine::HostEngine(const DreamerEngineConfig& config, const DreamerState& state,
                       SequenceBatch& batch, std::unique_ptr<GradientSync> sync)
    : config_(config),
      layout_(DreamerLayout(config.shape)),
      critic_(DreamerModule(layout_, "value")),
      parameters_(state.parameters),
      gradients_(parameters_.size()),
      slow_parameters_(state.slow),
      model_(config.shape, parameters_, gradients_),
      slow_(MakeDreamerCritic(config.shape, slow_parameters_)),
      optimiser_(OptimiserOf(config.settings), layout_),
      return_scale_(config.settings.return_rate),
      sync_(std::move(sync)),
      rows_(config.shape, batch),
      critic_before_(critic_.size) {
  Write(state);
}

bool HostEngine::Update(UpdateStats& stats) {
  bool taken = false;
  WithHostErrors(has_worked_, [&] { taken = UpdateInMemory(stats); });
  has_worked_ = has_worked_ || taken;
  return taken;
}

bool HostEngine::UpdateInMemory(UpdateStats& stats) {
  StageTimer timer;
  rows_.Fill();
  timer.AddTo(stats.sample_s);
  const ReturnScale::Range range = return_scale_.range();
  std::string& problem = stats.problem;
  const bool idle = rows_.batch().AllIdle();
  if (!idle) problem = ComputeTerms(stats);
  timer.AddTo(stats.forward_s);
  const bool all_ready = sync_->AllCanStep(!idle && problem.empty());
  if (idle) return false;
  if (problem.empty() && !all_ready) problem = "the loss of another learner";
  if (problem.empty()) problem = TakeStep(timer, stats);
  if (!problem.empty()) return_scale_.set_range(range);
  terms_.total = Tensor();  // with what the backward pass kept
  timer.AddTo(stats.optimise_s);
  return problem.empty();
}

std::string HostEngine::ComputeTerms(UpdateStats& stats) {
  std::string problem = rows_.NotFinite();
  if (!problem.empty()) return problem;
  terms_ = ComputeDreamerTerms(model_, slow_, config_.settings, rows_,
                               MakeUpdateSampler(config_.seed, optimiser_.steps()),
                               [this](const Tensor& returns) { return ScaleOf(returns); });
  stats.observe_s += terms_.observe_s;
  stats.imagine_s += terms_.imagine_s;
  return ReadDreamerNumbers(
      config_.settings, {terms_.numbers.const_data_ptr<float>(), kDreamerNumbers.size()}, stats);
}

Tensor HostEngine::ScaleOf(const Tensor& returns) {
  const std::span<const float> all(returns.const_data_ptr<float>(),
                                   static_cast<std::size_t>(returns.numel()));
  const std::vector<std::uint8_t>& is_idle = rows_.batch().is_idle;
  counted_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_idle[i % is_idle.size()] == 0) counted_.push_back(all[i]);
  }
  if (AllFinite(counted_)) return_scale_.Update(counted_);  // else the update is not taken
  return torch::scalar_tensor(return_scale_.scale());
}

std::string HostEngine::TakeStep(StageTimer& timer, UpdateStats& stats) {
  std::fill(gradients_.begin(), gradients_.end(), 0.0F);
  terms_.total.backward();
  sync_->AllReduce(gradients_);
  timer.AddTo(stats.backward_s);
  Figure(stats, "learning_rate") = optimiser_.LearningRate();
  const bool follows_old = config_.settings.slow_moves == "before";
  if (follows_old) std::ranges::copy(critic(), critic_before_.begin());
  const LaPropStep step = optimiser_.Step(parameters_, gradients_);
  Figure(stats, "grad_norm") = step.grad_norm;
  if (step.problem.empty()) MoveSlowCritic(follows_old ? critic_before_ : critic());
  return step.problem;
}

void HostEngine::MoveSlowCritic(std::span<const float> towards) {
  const auto rate = static_cast<float>(config_.settings.slow_rate);
  for (std::size_t i = 0; i < towards.size(); ++i) {
    slow_parameters_[i] += rate * (towards[i] - slow_parameters_[i]);
  }
}

LatentColumns HostEngine::latents() {
  return {.deter = static_cast<std::uint16_t*>(terms_.deter.data_ptr()),
          .stoch = terms_.stoch.mutable_data_ptr<std::uint8_t>()};
}

DreamerState HostEngine::Read() const {
  const std::span<const float> mean = optimiser_.mean(), square = optimiser_.square();
  return {.parameters = parameters_,
          .mean = {mean.begin(), mean.end()},
          .square = {square.begin(), square.end()},
          .slow = slow_parameters_,
          .range = return_scale_.range(),
          .updates = optimiser_.steps()};
}

void HostEngine::Write(const DreamerState& state) {
  std::ranges::copy(state.parameters, parameters_.begin());
  std::ranges::copy(state.mean, optimiser_.mean().begin());
  std::ranges::copy(state.square, optimiser_.square().begin());
  std::ranges::copy(state.slow, slow_parameters_.begin());
  return_scale_.set_range(state.range);
  optimiser_.set_steps(state.updates);
}

}  // namespace

std::unique_ptr<DreamerEngine> MakeHostEngine(const DreamerEngineConfig& config,
                                              const DreamerState& state, SequenceBatch& batch,
                                              std::unique_ptr<GradientSync> sync) {
  std::unique_ptr<DreamerEngine> engine;
  WithHostErrors(/*has_worked=*/false, [&] {
    engine = std::make_unique<HostEngine>(config, state, batch, std::move(sync));
  });
  return engine;
}

}  // namespace tetrion
