#include "lib/rl/dreamer/dreamer_trainer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/setting_check.h"
#include "lib/nn/torch/use_threads.h"
#include "lib/rl/dreamer/dreamer_engine.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/rl/parameter_tensors.h"
#include "lib/rl/sequence_batch.h"
#include "lib/rl/stage_timer.h"

namespace tetrion {

LatentSpec DreamerLatents(const DreamerSettings& settings) {
  const DreamerSize size = DreamerSizeOf(settings.size);
  return {.deter = static_cast<std::uint32_t>(size.deter),
          .stoch = static_cast<std::uint32_t>(size.stoch)};
}

namespace {

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

class DreamerTrainer final : public Trainer {
 public:
  DreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                 std::unique_ptr<GradientSync> sync, std::unique_ptr<UpdatePlace> place);

  UpdateStats Step(BatchSource& source, std::uint32_t version) override;
  std::span<const FigureInfo> Figures() const override { return kDreamerFigures; }
  void PolicyBlob(std::vector<std::byte>& out) const override;
  std::size_t PolicyBlobBytes() const override { return ActingFloats(shape_) * sizeof(float); }
  TrainerState Save() const override;
  void Load(const TrainerState& state) override;

 private:
  // Immutable after construction.
  const DreamerConfig config_;
  const EnvSpec env_;
  const DreamerShape shape_;
  const ParameterLayout layout_;
  const DreamerSlice critic_;
  SequenceBatch batch_;  // overwritten by every call
  std::unique_ptr<DreamerEngine> engine_;
};

// All 0.
DreamerState BlankState(const ParameterLayout& layout, const DreamerSlice& critic) {
  DreamerState state;
  for (auto* buffer : {&state.parameters, &state.mean, &state.square}) {
    buffer->resize(FloatsOf(layout));
  }
  state.slow.resize(critic.size);
  return state;
}

DreamerState InitialState(const DreamerShape& shape, std::uint64_t seed) {
  const ParameterLayout layout = DreamerLayout(shape);
  const DreamerSlice critic = DreamerModule(layout, "value");
  DreamerState state = BlankState(layout, critic);
  FillDreamerInitial(shape, seed, state.parameters);
  std::copy_n(state.parameters.begin() + static_cast<std::ptrdiff_t>(critic.offset), critic.size,
              state.slow.begin());
  return state;
}

DreamerTrainer::DreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                               std::unique_ptr<GradientSync> sync,
                               std::unique_ptr<UpdatePlace> place)
    : config_(config),
      env_(env),
      shape_(ModelShapeOf(env, config.settings)),
      layout_(DreamerLayout(shape_)),
      critic_(DreamerModule(layout_, "value")),
      batch_(env, config.window, config.batch_lanes, DreamerLatents(config.settings)) {
  UseThreads(config.threads);
  const DreamerEngineConfig engine = {config.settings, config.seed, shape_};
  const DreamerState initial = InitialState(shape_, config.seed);
  engine_ = place != nullptr ? MakeDeviceEngine(engine, initial, batch_, std::move(place))
                             : MakeHostEngine(engine, initial, batch_, std::move(sync));
}

UpdateStats DreamerTrainer::Step(BatchSource& source, std::uint32_t) {
  UpdateStats stats;
  StageTimer timer;
  TrainBatch batch = source.Next();
  timer.AddTo(stats.wait_s);
  stats.status = batch.status();
  if (stats.status != BatchStatus::kReady) return stats;
  UseThreads(config_.threads);
  batch_.Fill(env_, batch);
  timer.AddTo(stats.sample_s);
  if (!engine_->Update(stats)) {
    stats.skipped = stats.problem.empty() ? 0 : 1;  // of lanes that idle there was nothing to take
    return stats;
  }
  stats.updates = 1;
  timer = StageTimer();
  batch.ScatterLatents(
      {.first_lane = 0, .lanes = config_.batch_lanes, .first_row = 1, .rows = config_.window},
      engine_->latents());
  timer.AddTo(stats.sample_s);
  return stats;
}

void DreamerTrainer::PolicyBlob(std::vector<std::byte>& out) const {
  out.resize(PolicyBlobBytes());
  const std::span<std::byte> bytes(out);
  engine_->ReadParameters(std::span(reinterpret_cast<float*>(bytes.data()), ActingFloats(shape_)));
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
  const DreamerState now = engine_->Read();
  TrainerState state;
  AppendTensors(layout_, kModelPrefix, now.parameters, state);
  AppendTensors(layout_, kLaPropMeanPrefix, now.mean, state);
  AppendTensors(layout_, kLaPropSquarePrefix, now.square, state);
  AppendTensors(CriticLayout(layout_, critic_), kSlowPrefix, now.slow, state);
  state.tensors.push_back({kReturnRange, kReturnRangeShape, {now.range.low, now.range.high}});
  state.counters[kUpdatesCounter] = now.updates;
  return state;
}

void DreamerTrainer::Load(const TrainerState& state) {
  const std::int64_t updates = ReadUpdates(state);
  // Everything is read before anything is replaced.
  DreamerState read = BlankState(layout_, critic_);
  std::vector<float> range(2);
  ReadTensors(layout_, kModelPrefix, state, read.parameters);
  ReadTensors(layout_, kLaPropMeanPrefix, state, read.mean);
  ReadTensors(layout_, kLaPropSquarePrefix, state, read.square);
  const ParameterLayout critic = CriticLayout(layout_, critic_);
  ReadTensors(critic, kSlowPrefix, state, read.slow);
  ReadTensor(state, kReturnRange, kReturnRangeShape, range);
  if (state.tensors.size() != 3 * layout_.size() + critic.size() + 1) {
    throw Error(ExitCode::kConfig, "the checkpoint has tensors that this trainer does not know");
  }
  read.range = {range[0], range[1]};
  read.updates = updates;
  engine_->Write(read);
}

}  // namespace

LaPropConfig OptimiserOf(const DreamerSettings& settings) {
  return {.learning_rate = settings.learning_rate,
          .warmup_updates = settings.warmup_updates,
          .agc = settings.agc,
          .agc_least_norm = settings.agc_least_norm,
          .beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .epsilon = settings.epsilon};
}

std::unique_ptr<Trainer> MakeDreamerTrainer(const DreamerConfig& config, const EnvSpec& env,
                                            std::unique_ptr<GradientSync> sync,
                                            std::unique_ptr<UpdatePlace> place) {
  CheckConfig(config);
  return std::make_unique<DreamerTrainer>(config, env, std::move(sync), std::move(place));
}

}  // namespace tetrion
