#include "lib/nn/dreamer/dreamer_acting.h"

#include <algorithm>
#include <cstdint>

#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/torch/host_memory.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/nn/torch/use_threads.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kThreads = 1;
// Lanes that are seen at a time: an encoder of pictures keeps some 400 KB for each.
constexpr int kLanesAtOnce = 512;

// The caller's memory, read only.
Tensor View(const float* data, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(data), shape);
}

void CopyOut(const Tensor& tensor, float* out) {
  const Tensor whole = tensor.contiguous();
  std::copy_n(whole.const_data_ptr<float>(), whole.numel(), out);
}

}  // namespace

struct DreamerActing::Model {
  Model(const DreamerShape& shape, std::span<float> parameters)
      : model(shape, parameters, /*gradients=*/{}) {}
  const DreamerModel model;
};

DreamerActing::DreamerActing(const DreamerShape& shape)
    : shape_(shape),
      parameters_(ActingFloats(shape)),
      model_(std::make_unique<const Model>(shape, parameters_)) {}

DreamerActing::~DreamerActing() = default;

void DreamerActing::Observe(int n, const Before& before, float* deter, float* log_probs) const {
  UseThreads(kThreads);
  const std::int64_t d = shape_.size.deter, s = shape_.stoch_floats();
  for (int lane = 0; lane < n; lane += kLanesAtOnce) {
    ObserveSome(std::min(n - lane, kLanesAtOnce),
                {.deter = before.deter + lane * d,
                 .stoch = before.stoch + lane * s,
                 .action = before.action + lane * shape_.actions,
                 .view = before.view + lane * shape_.floats},
                deter + lane * d, log_probs + lane * s);
  }
}

void DreamerActing::ObserveSome(int n, const Before& before, float* deter, float* log_probs) const {
  const DreamerModel& model = model_->model;
  const DreamerSize& size = shape_.size;
  InHostMemory([&] {
    const c10::InferenceMode guard;
    const Tensor next = model.Core(View(before.deter, {n, size.deter}),
                                   View(before.stoch, {n, size.stoch, size.classes}),
                                   View(before.action, {n, shape_.actions}));
    const Tensor embed = model.Encode(View(before.view, {n, shape_.floats}));
    CopyOut(next, deter);
    CopyOut(model.PosteriorLogProbs(next, embed), log_probs);
  });
}

void DreamerActing::ActorLogits(int n, const float* deter, const float* stoch,
                                float* logits) const {
  UseThreads(kThreads);
  const DreamerSize& size = shape_.size;
  InHostMemory([&] {
    const c10::InferenceMode guard;
    const Tensor feature = model_->model.Feature(View(deter, {n, size.deter}),
                                                 View(stoch, {n, size.stoch, size.classes}));
    CopyOut(model_->model.ActorLogits(feature), logits);
  });
}

}  // namespace tetrion
