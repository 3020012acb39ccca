#include "lib/rl/dreamer/dreamer_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/finite.h"
#include "lib/core/setting_check.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/rl/dreamer/behaviour_loss.h"
#include "lib/rl/dreamer/dreamer_draws.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/dreamer/dreamer_rows.h"
#include "lib/rl/dreamer/laprop.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/rl/dreamer/return_scale.h"
#include "lib/rl/dreamer/world_model_loss.h"
#include "lib/rl/parameter_tensors.h"
#include "lib/rl/sequence_batch.h"
#include "lib/rl/stage_timer.h"

namespace tetrion {

using torch::Tensor;

LatentSpec DreamerLatents(const DreamerSettings& settings) {
  const DreamerSize size = DreamerSizeOf(settings.size);
  return {.deter = static_cast<std::uint32_t>(size.deter),
          .stoch = static_cast<std::uint32_t>(size.stoch)};
}

namespace {

constexpr char kUpdatesCounter[] = "updates";
constexpr char kReturnRange[] = "return_range";
const std::vector<std::int64_t> kReturnRangeShape = {2};

void CheckConfig(const DreamerConfig& config) {
  DreamerSettings settings = config.settings;
  SettingCheck check;
  settings.Visit(check);
  std::string wrong = check.problem();
  if (config.batch_lanes < 1) wrong = "batch_windows must be >= 1";
  if (config.window < 2) wrong = "window must be >= 2";
  if (config.threads < 1) wrong = "trainer threads must be >= 1";
  if (!wrong.empty()) throw Error(ExitCode::kUsage, wrong);
}

// A part of the loss.
struct LossPart {
  DreamerFigure figure;
  const char* name;
  double scale;
  Tensor value;
};

class DreamerTrainer final : public Trainer {
 public:
  DreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                 std::unique_ptr<GradientSync> sync);

  UpdateStats Step(BatchSource& source, std::uint32_t version) override;
  std::span<const FigureInfo> Figures() const override { return kDreamerFigures; }
  void PolicyBlob(std::vector<std::byte>& out) const override;
  std::size_t PolicyBlobBytes() const override { return ActingFloats(shape_) * sizeof(float); }
  TrainerState Save() const override;
  void Load(const TrainerState& state) override;

 private:
  // Losses, gradients and the optimiser's step; what was not finite, or nothing. Its two halves:
  // all but the backward pass, and the rest.
  std::string Update(UpdateStats& stats);
  std::string ComputeLosses(WorldModelLoss& world, Tensor& total, UpdateStats& stats);
  std::string TakeStep(const Tensor& total, StageTimer& timer, UpdateStats& stats);
  // Adds the parts to the total; the name of the first that is not finite, or nothing.
  static std::string AddParts(const std::vector<LossPart>& parts, Tensor& total,
                              UpdateStats& stats);
  std::vector<LossPart> WorldModelParts(const WorldModelLoss& world) const;
  std::vector<LossPart> BehaviourParts(const BehaviourLoss& behaviour) const;
  static void MeasureWorld(const WorldModelLoss& world, UpdateStats& stats);
  static void MeasureWorth(const ImaginedWorth& worth, UpdateStats& stats);
  // Of the last update, into deter_ and stoch_.
  void KeepLatents(const WorldModelLoss& world);
  // The critic's parameters of now, where the slow one is to follow those before the step.
  std::vector<float> CriticToFollow() const;
  // Towards `before`, or the critic as it is where that is empty.
  void MoveSlowCritic(const std::vector<float>& before);

  // Immutable after construction.
  const DreamerConfig config_;
  const EnvSpec env_;
  const DreamerShape shape_;
  const ParameterLayout layout_;
  const DreamerSlice critic_;
  // State of learning.
  std::vector<float> parameters_, gradients_;
  std::vector<float> slow_parameters_;
  DreamerModel model_;  // on the buffers above, as is the slow critic
  DreamerHead slow_;
  LaProp optimiser_;
  ReturnScale return_scale_;
  const std::unique_ptr<GradientSync> sync_;
  // Buffers, overwritten by every call.
  SequenceBatch batch_;
  DreamerRows rows_;
  Tensor deter_, stoch_;  // [T, B, D] bf16 and [T, B, S] u8: latents to write back
};

std::vector<float> InitialParameters(const DreamerShape& shape, std::uint64_t seed) {
  std::vector<float> parameters(FloatsOf(DreamerLayout(shape)));
  FillDreamerInitial(shape, seed, parameters);
  return parameters;
}

DreamerTrainer::DreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                               std::unique_ptr<GradientSync> sync)
    : config_(config),
      env_(env),
      shape_(ModelShapeOf(env, config.settings)),
      layout_(DreamerLayout(shape_)),
      critic_(DreamerModule(layout_, "value")),
      parameters_(InitialParameters(shape_, config.seed)),
      gradients_(parameters_.size()),
      slow_parameters_(
          parameters_.begin() + static_cast<std::ptrdiff_t>(critic_.offset),
          parameters_.begin() + static_cast<std::ptrdiff_t>(critic_.offset + critic_.size)),
      model_(shape_, parameters_, gradients_),
      slow_(MakeDreamerCritic(shape_, slow_parameters_)),
      optimiser_({.learning_rate = config.settings.learning_rate,
                  .warmup_updates = config.settings.warmup_updates,
                  .agc = config.settings.agc,
                  .agc_least_norm = config.settings.agc_least_norm,
                  .beta1 = config.settings.beta1,
                  .beta2 = config.settings.beta2,
                  .epsilon = config.settings.epsilon},
                 layout_),
      return_scale_(config.settings.return_rate),
      sync_(std::move(sync)),
      batch_(env, config.window, config.batch_lanes, DreamerLatents(config.settings)),
      rows_(shape_, batch_) {}

UpdateStats DreamerTrainer::Step(BatchSource& source, std::uint32_t) {
  UpdateStats stats;
  StageTimer timer;
  TrainBatch batch = source.Next();
  timer.AddTo(stats.wait_s);
  stats.status = batch.status();
  if (stats.status != BatchStatus::kReady) return stats;
  if (at::get_num_threads() != config_.threads) at::set_num_threads(config_.threads);
  batch_.Fill(env_, batch);
  rows_.Fill();
  timer.AddTo(stats.sample_s);
  stats.problem = Update(stats);
  if (!stats.problem.empty()) {
    stats.skipped = 1;
    return stats;
  }
  stats.updates = 1;
  timer = StageTimer();
  batch.ScatterLatents(
      {.first_lane = 0, .lanes = config_.batch_lanes, .first_row = 1, .rows = config_.window},
      {.deter = static_cast<std::uint16_t*>(deter_.data_ptr()),
       .stoch = stoch_.mutable_data_ptr<std::uint8_t>()});
  timer.AddTo(stats.sample_s);
  return stats;
}

std::string DreamerTrainer::Update(UpdateStats& stats) {
  StageTimer timer;
  const ReturnScale::Range range = return_scale_.range();
  WorldModelLoss world;
  Tensor total;
  std::string problem = ComputeLosses(world, total, stats);
  timer.AddTo(stats.forward_s);
  const bool all_ready = sync_->AllCanStep(problem.empty());
  if (problem.empty() && !all_ready) problem = "the loss of another learner";
  if (problem.empty()) problem = TakeStep(total, timer, stats);
  if (!problem.empty()) {
    return_scale_.set_range(range);
    return problem;
  }
  KeepLatents(world);
  timer.AddTo(stats.optimise_s);
  return "";
}

std::string DreamerTrainer::ComputeLosses(WorldModelLoss& world, Tensor& total,
                                          UpdateStats& stats) {
  StageTimer timer;
  const DreamerSettings& settings = config_.settings;
  if (!AllFinite(batch_.view)) return "an observation of the batch";
  if (!AllFinite(batch_.reward)) return "a reward of the batch";
  const OneHotSampler sample =
      MakeUpdateSampler(config_.seed, static_cast<std::uint64_t>(optimiser_.steps()));
  world = ComputeWorldModelLoss(model_, settings, rows_, sample);
  MeasureWorld(world, stats);
  const std::string problem = AddParts(WorldModelParts(world), total, stats);
  if (!problem.empty()) return problem;
  timer.AddTo(stats.observe_s);
  Imagination imagined = Imagine(model_, world.deter.flatten(0, 1), world.stoch.flatten(0, 1),
                                 settings.horizon, sample);
  if (settings.start_weight == "data") imagined.start_alive = rows_.alive.flatten();
  timer.AddTo(stats.imagine_s);
  const ImaginedWorth worth = ComputeImaginedWorth(model_, slow_, settings, imagined);
  const auto* returns = worth.returns.const_data_ptr<float>();
  const std::span<const float> all_returns(returns,
                                           static_cast<std::size_t>(worth.returns.numel()));
  if (!AllFinite(all_returns)) return "an imagined return";
  return_scale_.Update(all_returns);
  MeasureWorth(worth, stats);
  Figure(stats, "return_scale") = return_scale_.scale();
  const BehaviourLoss behaviour = ComputeBehaviourLoss(model_, slow_, settings, rows_, world,
                                                       imagined, worth, return_scale_.scale());
  Figure(stats, "entropy") = behaviour.entropy.item<double>();
  return AddParts(BehaviourParts(behaviour), total, stats);
}

std::string DreamerTrainer::TakeStep(const Tensor& total, StageTimer& timer, UpdateStats& stats) {
  std::fill(gradients_.begin(), gradients_.end(), 0.0F);
  total.backward();
  sync_->AllReduce(gradients_);
  timer.AddTo(stats.backward_s);
  Figure(stats, "learning_rate") = optimiser_.LearningRate();
  const std::vector<float> critic = CriticToFollow();
  const LaPropStep step = optimiser_.Step(parameters_, gradients_);
  Figure(stats, "grad_norm") = step.grad_norm;
  if (step.problem.empty()) MoveSlowCritic(critic);
  return step.problem;
}

std::vector<LossPart> DreamerTrainer::WorldModelParts(const WorldModelLoss& world) const {
  const DreamerSettings& settings = config_.settings;
  return {
      {"reconstruction_loss", "the reconstruction loss", settings.reconstruction_scale,
       world.reconstruction},
      {"reward_loss", "the reward loss", settings.reward_loss_scale, world.reward},
      {"continue_loss", "the continue loss", settings.continue_loss_scale, world.cont},
      {"dynamics_loss", "the dynamics loss", settings.dynamics_scale, world.dynamics},
      {"representation_loss", "the representation loss", settings.representation_scale,
       world.representation},
  };
}

std::vector<LossPart> DreamerTrainer::BehaviourParts(const BehaviourLoss& behaviour) const {
  return {
      {"policy_loss", "the policy loss", 1.0, behaviour.policy},
      {"value_loss", "the value loss", 1.0, behaviour.value},
      {"replay_value_loss", "the replay value loss", config_.settings.replay_value_scale,
       behaviour.replay_value},
  };
}

std::string DreamerTrainer::AddParts(const std::vector<LossPart>& parts, Tensor& total,
                                     UpdateStats& stats) {
  for (const LossPart& part : parts) {
    const double value = part.value.item<double>();
    if (!std::isfinite(value)) return part.name;
    Figure(stats, part.figure) = value;
    Figure(stats, "loss") += part.scale * value;
    const Tensor weighed = part.value * part.scale;
    total = total.defined() ? total + weighed : weighed;
  }
  return "";
}

void DreamerTrainer::MeasureWorld(const WorldModelLoss& world, UpdateStats& stats) {
  const torch::NoGradGuard no_gradient;
  const auto entropy = [](const Tensor& log_probs) {
    return -(log_probs.exp() * log_probs).sum({-2, -1}).mean().item<double>();
  };
  Figure(stats, "prior_entropy") = entropy(world.prior);
  Figure(stats, "posterior_entropy") = entropy(world.posterior);
}

void DreamerTrainer::MeasureWorth(const ImaginedWorth& worth, UpdateStats& stats) {
  Figure(stats, "imagined_return") = worth.returns.mean().item<double>();
  Figure(stats, "imagined_reward") = worth.reward.mean().item<double>();
  Figure(stats, "imagined_value") = worth.value.mean().item<double>();
}

void DreamerTrainer::KeepLatents(const WorldModelLoss& world) {
  deter_ = world.deter.detach().to(torch::kBFloat16).contiguous();
  stoch_ = world.stoch.detach().argmax(-1).to(torch::kUInt8).contiguous();
}

std::vector<float> DreamerTrainer::CriticToFollow() const {
  if (config_.settings.slow_moves == "after") return {};
  const auto begin = parameters_.begin() + static_cast<std::ptrdiff_t>(critic_.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(critic_.size)};
}

void DreamerTrainer::MoveSlowCritic(const std::vector<float>& before) {
  const auto rate = static_cast<float>(config_.settings.slow_rate);
  const float* const critic = before.empty() ? &parameters_[critic_.offset] : before.data();
  for (std::size_t i = 0; i < critic_.size; ++i) {
    slow_parameters_[i] += rate * (critic[i] - slow_parameters_[i]);
  }
}

void DreamerTrainer::PolicyBlob(std::vector<std::byte>& out) const {
  out.resize(PolicyBlobBytes());
  std::memcpy(out.data(), parameters_.data(), out.size());
}

// The critic's pieces as a buffer of their own.
ParameterLayout CriticLayout(const ParameterLayout& layout, const DreamerSlice& critic) {
  ParameterLayout pieces;
  for (ParameterInfo info : layout) {
    if (info.offset < critic.offset || info.offset >= critic.offset + critic.size) continue;
    info.offset -= critic.offset;
    pieces.push_back(std::move(info));
  }
  return pieces;
}

TrainerState DreamerTrainer::Save() const {
  TrainerState state;
  AppendTensors(layout_, "model.", parameters_, state);
  AppendTensors(layout_, "laprop_mean.", optimiser_.mean(), state);
  AppendTensors(layout_, "laprop_square.", optimiser_.square(), state);
  AppendTensors(CriticLayout(layout_, critic_), "slow.", slow_parameters_, state);
  const ReturnScale::Range& range = return_scale_.range();
  state.tensors.push_back({kReturnRange, kReturnRangeShape, {range.low, range.high}});
  state.counters[kUpdatesCounter] = optimiser_.steps();
  return state;
}

void DreamerTrainer::Load(const TrainerState& state) {
  const auto updates = state.counters.find(kUpdatesCounter);
  if (updates == state.counters.end() || updates->second < 0) {
    throw Error(ExitCode::kConfig,
                "the checkpoint has no counter \"updates\": it is not a trainer's");
  }
  // Everything is read before anything is replaced.
  std::vector<float> parameters(parameters_.size()), mean(parameters), square(parameters);
  std::vector<float> slow(slow_parameters_.size()), range(2);
  ReadTensors(layout_, "model.", state, parameters);
  ReadTensors(layout_, "laprop_mean.", state, mean);
  ReadTensors(layout_, "laprop_square.", state, square);
  const ParameterLayout critic = CriticLayout(layout_, critic_);
  ReadTensors(critic, "slow.", state, slow);
  ReadTensor(state, kReturnRange, kReturnRangeShape, range);
  if (state.tensors.size() != 3 * layout_.size() + critic.size() + 1) {
    throw Error(ExitCode::kConfig, "the checkpoint has tensors that this trainer does not know");
  }
  std::copy(parameters.begin(), parameters.end(), parameters_.begin());
  std::copy(mean.begin(), mean.end(), optimiser_.mean().begin());
  std::copy(square.begin(), square.end(), optimiser_.square().begin());
  std::copy(slow.begin(), slow.end(), slow_parameters_.begin());
  return_scale_.set_range({range[0], range[1]});
  optimiser_.set_steps(updates->second);
}

}  // namespace

std::unique_ptr<Trainer> MakeDreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                                            std::unique_ptr<GradientSync> sync) {
  CheckConfig(config);
  return std::make_unique<DreamerTrainer>(config, env, std::move(sync));
}

}  // namespace tetrion
