#include "lib/nn/torch/torch_networks.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/conv.h"
#include "lib/nn/mlp.h"
#include "lib/nn/torch/host_memory.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/nn/torch/use_threads.h"

namespace tetrion {
namespace {

using torch::Tensor;

struct Heads {
  Tensor logits;  // [N, A]
  Tensor value;   // [N]
};

// A network whose forward pass is tensor operations on views of the flat parameter buffer.
class TorchNetwork : public Network {
 public:
  void Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
             float* value) override {
    UseThreads(threads_);
    InHostMemory([&] {
      const c10::InferenceMode guard;
      const Heads heads = Compute(ViewOf(view, n));
      CopyOut(heads, mask, n, logits, value);
    });
  }

  void Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
               float* value) override {
    TETRION_CHECK(!gradients_.empty(), "Forward is for networks made for training");
    UseThreads(threads_);
    InHostMemory([&] {
      last_ = Compute(ViewOf(view, n));
      mask_ = mask;
      CopyOut({last_.logits.detach(), last_.value.detach()}, mask, n, logits, value);
    });
  }

  void Backward(const float* grad_logits, const float* grad_value) override {
    TETRION_CHECK(last_.logits.defined(), "Backward needs a Forward");
    UseThreads(threads_);
    const std::int64_t n = last_.value.size(0);
    grad_logits_.assign(grad_logits, grad_logits + n * actions_);
    for (std::int64_t cell = 0; mask_ != nullptr && cell < n * actions_; ++cell) {
      if ((mask_[cell / actions_] >> (cell % actions_) & 1) == 0) {
        grad_logits_[static_cast<std::size_t>(cell)] = 0.0F;
      }
    }
    const Tensor logits = torch::from_blob(grad_logits_.data(), {n, actions_});
    const Tensor value = torch::from_blob(const_cast<float*>(grad_value), {n});
    InHostMemory([&] { torch::autograd::backward({last_.logits, last_.value}, {logits, value}); });
    last_ = {};
  }

 protected:
  TorchNetwork(const NetworkConfig& config, const EnvSpec& env)
      : actions_(env.action.count),
        view_floats_(env.obs.view_floats),
        max_states_(config.max_states),
        threads_(config.threads) {}

  virtual Heads Compute(const Tensor& view) const = 0;  // view [N, F]

  // After the last AddParameter: makes the tensors and, unless blank, sets initial values.
  void Build(const NetworkConfig& config) {
    AllocateBuffers(config.training);
    if (!config.blank) FillInitial(layout_, config.seed, parameters());
    grad_logits_.reserve(static_cast<std::size_t>(max_states_) *
                         static_cast<std::size_t>(actions_));
    for (const ParameterInfo& info : layout_) {
      Tensor tensor = torch::from_blob(parameters_.data() + info.offset, info.shape);
      if (config.training) {
        tensor.requires_grad_(true);
        tensor.mutable_grad() = torch::from_blob(gradients_.data() + info.offset, info.shape);
      }
      tensors_.push_back(tensor);
    }
  }

  // Parameter number `index` in layout order, a view of the flat buffer.
  const Tensor& W(std::size_t index) const { return tensors_[index]; }

  std::int64_t actions() const { return actions_; }
  std::int64_t view_floats() const { return view_floats_; }

 private:
  Tensor ViewOf(const float* view, int n) const {
    TETRION_CHECK(n >= 0 && n <= max_states_, "more states than the network was made for");
    return torch::from_blob(const_cast<float*>(view), {n, view_floats_});
  }

  void CopyOut(const Heads& heads, const std::uint64_t* mask, int n, float* logits,
               float* value) const {
    const std::int64_t cells = n * actions_;
    if (logits != nullptr) {
      std::copy_n(heads.logits.contiguous().const_data_ptr<float>(), cells, logits);
      for (std::int64_t cell = 0; mask != nullptr && cell < cells; ++cell) {
        if ((mask[cell / actions_] >> (cell % actions_) & 1) == 0) logits[cell] = kMaskedLogit;
      }
    }
    if (value != nullptr) {
      std::copy_n(heads.value.contiguous().const_data_ptr<float>(), n, value);
    }
  }

  const std::int64_t actions_;
  const std::int64_t view_floats_;
  const int max_states_;
  const int threads_;
  std::vector<Tensor> tensors_;
  std::vector<float> grad_logits_;  // [N, A], masked
  Heads last_;
  const std::uint64_t* mask_ = nullptr;
};

// Linear -> LayerNorm -> SiLU, twice, then both heads: parameters first..first+11.
Heads WideTrunk(const Tensor& x, const std::vector<Tensor>& w) {
  Tensor h = x;
  for (std::size_t layer = 0; layer < 8; layer += 4) {
    h = torch::linear(h, w[layer], w[layer + 1]);
    h = torch::layer_norm(h, {kWideMlpUnits}, w[layer + 2], w[layer + 3], kLayerNormEpsilon);
    h = torch::silu(h);
  }
  return {torch::linear(h, w[8], w[9]), torch::linear(h, w[10], w[11]).squeeze(1)};
}

class Conv final : public TorchNetwork {
 public:
  Conv(const NetworkConfig& config, const EnvSpec& env) : TorchNetwork(config, env) {
    name_ = "conv";
    layout_ = ConvLayout(env);
    Build(config);
    for (std::size_t i = 6; i < layout_.size(); ++i) trunk_.push_back(W(i));
  }

 private:
  Heads Compute(const Tensor& view) const override {
    const std::int64_t n = view.size(0);
    const Tensor planes = view.narrow(1, 0, kConvPlaneFloats)
                              .reshape({n, kConvPlanes, kConvPlaneRows, kConvPlaneColumns});
    const auto conv = [&](const Tensor& x, std::size_t first) {
      return torch::conv2d(x, W(first), W(first + 1), /*stride=*/1, /*padding=*/1);
    };
    const Tensor h = torch::silu(conv(planes, 0));
    const Tensor out = torch::silu(conv(torch::silu(conv(h, 2)), 4) + h);
    const Tensor rest = view.narrow(1, kConvPlaneFloats, view_floats() - kConvPlaneFloats);
    return WideTrunk(torch::cat({out.flatten(1), rest}, 1), trunk_);
  }

  std::vector<Tensor> trunk_;
};

}  // namespace

std::unique_ptr<Network> MakeConv(const NetworkConfig& config, const EnvSpec& env) {
  return std::make_unique<Conv>(config, env);
}

}  // namespace tetrion
