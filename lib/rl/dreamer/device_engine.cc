#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/rl/dreamer/dreamer_engine.h"
#include "lib/rl/dreamer/dreamer_terms.h"
#include "lib/rl/dreamer/tensor_laprop.h"
#include "lib/rl/dreamer/tensor_return_scale.h"
#include "lib/rl/stage_timer.h"

namespace tetrion {
namespace {

using torch::Tensor;

torch::Device DeviceOf(const UpdatePlace& place) {
  if (place.ordinal() == UpdatePlace::kSimulated) return torch::kCPU;
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(place.ordinal())};
}

Tensor Floats(std::size_t count, const torch::Device& device) {
  return torch::zeros({static_cast<std::int64_t>(count)},
                      torch::TensorOptions().dtype(torch::kFloat32).device(device));
}
std::span<float> SpanOf(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// Between memory of the host and a tensor [n].
void Upload(std::span<const float> from, const Tensor& to) {
  to.copy_(torch::from_blob(const_cast<float*>(from.data()), {to.numel()}));
}
void Download(const Tensor& from, std::span<float> to) {
  torch::from_blob(to.data(), {from.numel()}).copy_(from);
}
std::vector<float> Downloaded(const Tensor& from) {
  std::vector<float> values(static_cast<std::size_t>(from.numel()));
  Download(from, values);
  return values;
}

class DeviceEngine final : public DreamerEngine {
 public:
  DeviceEngine(const DreamerEngineConfig& config, const DreamerState& state, SequenceBatch& batch,
               std::unique_ptr<UpdatePlace> place);

  bool Update(UpdateStats& stats) override;
  LatentColumns latents() override;
  DreamerState Read() const override;
  void Write(const DreamerState& state) override;
  void ReadParameters(std::span<float> out) const override;

 private:
  // All of an update, enqueued: batch to parameters and results. Nothing is read on the host.
  void Enqueue();
  // Fills `stats` from results_; what was not finite, or nothing.
  std::string ReadResults(UpdateStats& stats);

  const DreamerEngineConfig config_;
  const std::unique_ptr<UpdatePlace> place_;
  const torch::Device device_;
  const ParameterLayout layout_;
  const DreamerSlice critic_;
  // Device memory, whose addresses stay.
  Tensor parameters_, gradients_, slow_parameters_;
  DreamerModel model_;  // on the buffers above, as is the slow critic
  DreamerHead slow_;
  TensorLaProp optimiser_;
  TensorReturnScale return_scale_;
  DreamerRows rows_;
  Tensor results_;           // the kDreamerNumbers, then the norm of each piece's gradient
  Tensor deter_, stoch_;     // [T, B, D] bf16, [T, B, S] u8
  std::vector<float> read_;  // results_, on the host
  Tensor read_deter_, read_stoch_;
  std::int64_t updates_ = 0;  // that were taken
};

DeviceEngine::DeviceEngine(const DreamerEngineConfig& config, const DreamerState& state,
                           SequenceBatch& batch, std::unique_ptr<UpdatePlace> place)
    : config_(config),
      place_(std::move(place)),
      device_(DeviceOf(*place_)),
      layout_(DreamerLayout(config.shape)),
      critic_(DreamerModule(layout_, "value")),
      parameters_(Floats(state.parameters.size(), device_)),
      gradients_(Floats(state.parameters.size(), device_)),
      slow_parameters_(Floats(state.slow.size(), device_)),
      model_(config.shape, SpanOf(parameters_), SpanOf(gradients_), device_),
      slow_(MakeDreamerCritic(config.shape, SpanOf(slow_parameters_), {}, device_)),
      optimiser_(OptimiserOf(config.settings), layout_, parameters_, gradients_),
      return_scale_(config.settings.return_rate, device_),
      rows_(config.shape, batch, device_, /*every_row_may_begin=*/true),
      results_(Floats(kDreamerNumbers.size() + layout_.size(), device_)),
      read_(static_cast<std::size_t>(results_.numel())) {
  const DreamerSize& size = config.shape.size;
  const std::int64_t t = batch.steps, b = batch.lanes;
  read_deter_ = torch::zeros({t, b, size.deter}, torch::kBFloat16);
  read_stoch_ = torch::zeros({t, b, size.stoch}, torch::kUInt8);
  deter_ = torch::zeros_like(read_deter_, torch::TensorOptions().device(device_));
  stoch_ = torch::zeros_like(read_stoch_, torch::TensorOptions().device(device_));
  Write(state);
}

bool DeviceEngine::Update(UpdateStats& stats) {
  if (rows_.batch().AllIdle()) return false;
  StageTimer timer;
  stats.problem = rows_.NotFinite();
  if (!stats.problem.empty()) return false;
  place_->Once([this] { rows_.Fill(); });
  timer.AddTo(stats.sample_s);
  place_->Repeat([this] { Enqueue(); });
  timer.AddTo(stats.forward_s);
  place_->Once([this] {
    Download(results_, read_);
    read_deter_.copy_(deter_);
    read_stoch_.copy_(stoch_);
  });
  timer.AddTo(stats.sample_s);
  stats.problem = ReadResults(stats);
  return stats.problem.empty();
}

void DeviceEngine::Enqueue() {
  const UpdateKernelsScope scope(place_->kernels());
  gradients_.zero_();
  DreamerTerms terms =
      ComputeDreamerTerms(model_, slow_, config_.settings, rows_,
                          MakeDeviceSampler(config_.seed, optimiser_.steps(), place_->kernels()),
                          [this](const Tensor& returns) {
                            return return_scale_.Follow(returns, rows_.counts.flatten());
                          });
  terms.total.backward();
  const torch::NoGradGuard no_gradient;
  const Tensor critic = parameters_.narrow(0, static_cast<std::int64_t>(critic_.offset),
                                           static_cast<std::int64_t>(critic_.size));
  const Tensor towards = config_.settings.slow_moves == "before" ? critic.clone() : critic;
  const Tensor finite = terms.numbers.narrow(0, 0, kMustBeFinite).isfinite().all();
  const TensorLaProp::Step step = optimiser_.Take(finite);
  const Tensor slow = torch::lerp(slow_parameters_, towards, config_.settings.slow_rate);
  slow_parameters_.copy_(torch::where(step.taken, slow, slow_parameters_));
  return_scale_.Keep(step.taken);
  results_.copy_(torch::cat({terms.numbers, step.norms}));
  deter_.copy_(terms.deter);
  stoch_.copy_(terms.stoch);
}

std::string DeviceEngine::ReadResults(UpdateStats& stats) {
  const std::span<const float> numbers(read_);
  const std::string problem = ReadDreamerNumbers(config_.settings, numbers, stats);
  if (!problem.empty()) return problem;
  Figure(stats, "learning_rate") = LaPropRate(OptimiserOf(config_.settings), updates_);
  double grad_norm = 0;
  for (std::size_t piece = 0; piece < layout_.size(); ++piece) {
    const double norm = numbers[kDreamerNumbers.size() + piece];
    if (!std::isfinite(norm)) return "the gradient of " + layout_[piece].name;
    grad_norm = std::hypot(grad_norm, norm);
  }
  Figure(stats, "grad_norm") = grad_norm;
  ++updates_;
  return "";
}

LatentColumns DeviceEngine::latents() {
  return {.deter = static_cast<std::uint16_t*>(read_deter_.data_ptr()),
          .stoch = read_stoch_.mutable_data_ptr<std::uint8_t>()};
}

DreamerState DeviceEngine::Read() const {
  DreamerState state;
  place_->Once([&] {
    const std::vector<float> range = Downloaded(return_scale_.range());
    state = {.parameters = Downloaded(parameters_),
             .mean = Downloaded(optimiser_.mean()),
             .square = Downloaded(optimiser_.square()),
             .slow = Downloaded(slow_parameters_),
             .range = {range[0], range[1]},
             .updates = updates_};
  });
  return state;
}

void DeviceEngine::Write(const DreamerState& state) {
  place_->Once([&] {
    Upload(state.parameters, parameters_);
    Upload(state.mean, optimiser_.mean());
    Upload(state.square, optimiser_.square());
    Upload(state.slow, slow_parameters_);
    Upload(std::vector<float>{state.range.low, state.range.high}, return_scale_.range());
    optimiser_.steps().fill_(state.updates);
  });
  updates_ = state.updates;
}

void DeviceEngine::ReadParameters(std::span<float> out) const {
  place_->Once(
      [&] { Download(parameters_.narrow(0, 0, static_cast<std::int64_t>(out.size())), out); });
}

}  // namespace

std::unique_ptr<DreamerEngine> MakeDeviceEngine(const DreamerEngineConfig& config,
                                                const DreamerState& state, SequenceBatch& batch,
                                                std::unique_ptr<UpdatePlace> place) {
  UpdatePlace& at = *place;
  std::unique_ptr<DreamerEngine> engine;
  at.Once([&] {  // so that its memory is made in the order of the place's work
    engine = std::make_unique<DeviceEngine>(config, state, batch, std::move(place));
  });
  return engine;
}

}  // namespace tetrion
