#include "lib/nn/mlp_network.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/categorical.h"
#include "lib/nn/chunked_network.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/mlp.h"
#include "lib/nn/multiply_by.h"

namespace tetrion {
namespace {

constexpr int kChunk = 64;  // states
constexpr auto kEpsilon = static_cast<float>(kLayerNormEpsilon);

std::size_t Floats(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// y = x W^T + b with W [out, in], as a run stores it. Weights and gradients are the caller's.
class Linear {
 public:
  Linear(const DenseKernels& kernels, const ParameterLayout& layout, const std::string& name)
      : kernels_(&kernels),
        weight_(ParameterOf(layout, name + ".weight").offset),
        bias_(ParameterOf(layout, name + ".bias").offset),
        out_(ParameterOf(layout, name + ".weight").shape[0]),
        in_(ParameterOf(layout, name + ".weight").shape[1]),
        transposed_(Floats(out_ * in_)),
        forward_(kernels, in_, out_) {}

  // Again whenever the parameters have changed, which must stay until the last product.
  void PrepareForward(const float* parameters) {
    kernels_->transpose(parameters + weight_, out_, in_, transposed_.data());
    forward_.Pack(transposed_.data());
  }
  // What BackwardInput needs, at first and again likewise. First layers have no use for it.
  void PrepareBackward(const float* parameters) {
    if (!back_) back_.emplace(*kernels_, out_, in_);
    back_->Pack(parameters + weight_);
  }

  // x [rows, in], rows one behind the other -> y [rows, out].
  void Forward(const float* parameters, const float* x, std::int64_t rows, float* y) const {
    forward_.Multiply(parameters + bias_, nullptr, x, in_, rows, y);
  }
  // d loss / d x [rows, in] from that of y.
  void BackwardInput(const float* grad_y, std::int64_t rows, float* grad_x) const {
    back_->Multiply(nullptr, nullptr, grad_y, out_, rows, grad_x);
  }
  // Adds d loss / d W and d loss / d b to `gradient`, as long as the parameters.
  void BackwardWeights(const float* x, const float* grad_y, std::int64_t rows,
                       float* gradient) const {
    kernels_->outer_add(grad_y, out_, rows, out_, x, in_, gradient + weight_);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < out_; ++i) gradient[bias_ + Floats(i)] += grad_y[row * out_ + i];
    }
  }

 private:
  const DenseKernels* kernels_;
  const std::size_t weight_, bias_;
  const std::int64_t out_, in_;
  std::vector<float> transposed_;
  PackedWeights forward_;
  std::optional<PackedWeights> back_;
};

// What the two shapes have in common: chunks of states, the mask, preparing their layers.
class Mlp : public ChunkedNetwork {
 protected:
  Mlp(const NetworkConfig& config, const EnvSpec& env)
      : ChunkedNetwork(config, env, "mlp", kChunk), kernels_(BestDenseKernels()) {
    layout_ = MlpLayout(env);
    AllocateParameters(config.training);
    if (!config.blank) FillInitial(layout_, config.seed, parameters());
  }

  Linear LayerOf(const std::string& name) const { return {kernels_, layout_, name}; }
  // The layers, once they are made and stay where they are: those that read a view, and the others.
  void Prepare(std::vector<Linear*> first, std::vector<Linear*> later) {
    first_layers_ = std::move(first);
    later_layers_ = std::move(later);
  }

  void PrepareForward() override {
    for (const auto* layers : {&first_layers_, &later_layers_}) {
      for (Linear* layer : *layers) layer->PrepareForward(parameters_.data());
    }
  }
  void PrepareBackward() override {
    for (Linear* layer : later_layers_) layer->PrepareBackward(parameters_.data());
  }

  // Of the chunk's state s, whether action a may be chosen.
  static bool IsLegal(const Chunk& chunk, std::int64_t s, int a) {
    return chunk.mask == nullptr || (chunk.mask[s] >> a & 1) != 0;
  }
  void Mask(const Chunk& chunk, float* logits) const {
    for (std::int64_t s = 0; chunk.mask != nullptr && s < chunk.states; ++s) {
      for (int a = 0; a < actions_; ++a) {
        if (!IsLegal(chunk, s, a)) logits[s * actions_ + a] = kMaskedLogit;
      }
    }
  }
  // `grad` [states, A] with 0 for masked logits: itself, or in `out` where there is a mask.
  const float* WithoutMasked(const Chunk& chunk, const float* grad, std::vector<float>& out) const {
    if (chunk.mask == nullptr) return grad;
    for (std::int64_t s = 0; s < chunk.states; ++s) {
      for (int a = 0; a < actions_; ++a) {
        const std::int64_t at = s * actions_ + a;
        out[Floats(at)] = IsLegal(chunk, s, a) ? grad[at] : 0.0F;
      }
    }
    return out.data();
  }

  const DenseKernels& kernels_;

 private:
  std::vector<Linear*> first_layers_, later_layers_;
};

// Policy and value with a trunk of their own.
class SmallMlp final : public Mlp {
 public:
  SmallMlp(const NetworkConfig& config, const EnvSpec& env)
      : Mlp(config, env),
        policy_{LayerOf("policy.1"), LayerOf("policy.2"), LayerOf("policy.head")},
        value_{LayerOf("value.1"), LayerOf("value.2"), LayerOf("value.head")} {
    Prepare({&policy_.first, &value_.first},
            {&policy_.second, &policy_.head, &value_.second, &value_.head});
    for (int member = 0; member < members(); ++member) {
      Scratch& scratch = scratch_.emplace_back();
      scratch.active.resize(Floats(2 * kLayer));
      if (!config.training) continue;
      scratch.grad_logits.resize(Floats(std::int64_t{kChunk} * actions_));
      for (auto* buffer : {&scratch.grad1, &scratch.grad2}) buffer->resize(Floats(kLayer));
    }
    if (config.training) saved_.resize(Floats(4 * kLayer * most_chunks()));
  }

 private:
  struct Trunk {
    Linear first, second, head;
  };
  struct Scratch {
    std::vector<float> active;        // both layers of a call that keeps nothing
    std::vector<float> grad1, grad2;  // [states, units]
    std::vector<float> grad_logits;   // [states, A]
  };
  static constexpr std::int64_t kLayer = kChunk * kSmallMlpUnits;  // floats

  void ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) override {
    float* spare = ScratchOf(chunk).active.data();
    if (logits != nullptr || keep) {
      RunTrunk(policy_, chunk, keep ? SavedOf(chunk, 0) : spare, logits);
      if (logits != nullptr) Mask(chunk, logits);
    }
    if (value != nullptr || keep) RunTrunk(value_, chunk, keep ? SavedOf(chunk, 1) : spare, value);
  }

  void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                     float* gradient) override {
    Scratch& scratch = ScratchOf(chunk);
    BackwardTrunk(policy_, chunk, SavedOf(chunk, 0),
                  WithoutMasked(chunk, grad_logits, scratch.grad_logits), gradient);
    BackwardTrunk(value_, chunk, SavedOf(chunk, 1), grad_value, gradient);
  }

  // `active`: both hidden layers, kLayer floats each; `out` may be null.
  void RunTrunk(const Trunk& trunk, const Chunk& chunk, float* active, float* out) const {
    const float* p = parameters_.data();
    const std::int64_t rows = chunk.states;
    float* second = active + kLayer;
    trunk.first.Forward(p, chunk.view, rows, active);
    kernels_.tanh(active, rows, kSmallMlpUnits, active);
    trunk.second.Forward(p, active, rows, second);
    kernels_.tanh(second, rows, kSmallMlpUnits, second);
    if (out != nullptr) trunk.head.Forward(p, second, rows, out);
  }

  void BackwardTrunk(const Trunk& trunk, const Chunk& chunk, const float* active,
                     const float* grad_out, float* gradient) {
    Scratch& scratch = ScratchOf(chunk);
    const std::int64_t rows = chunk.states;
    const float* second = active + kLayer;
    float* grad1 = scratch.grad1.data();
    float* grad2 = scratch.grad2.data();
    trunk.head.BackwardWeights(second, grad_out, rows, gradient);
    trunk.head.BackwardInput(grad_out, rows, grad2);
    ThroughTanh(second, rows * kSmallMlpUnits, grad2);
    trunk.second.BackwardWeights(active, grad2, rows, gradient);
    trunk.second.BackwardInput(grad2, rows, grad1);
    ThroughTanh(active, rows * kSmallMlpUnits, grad1);
    trunk.first.BackwardWeights(chunk.view, grad1, rows, gradient);
  }

  // grad [count] *= 1 - active^2, the slope of tanh where it gives `active`.
  static void ThroughTanh(const float* active, std::int64_t count, float* grad) {
    for (std::int64_t i = 0; i < count; ++i) grad[i] *= 1.0F - active[i] * active[i];
  }

  float* SavedOf(const Chunk& chunk, int trunk) {
    return saved_.data() + (2 * chunk.index + trunk) * 2 * kLayer;
  }
  Scratch& ScratchOf(const Chunk& chunk) { return scratch_[Floats(chunk.member)]; }

  Trunk policy_, value_;
  std::vector<Scratch> scratch_;  // one a member
  std::vector<float> saved_;      // [chunks of the last Forward, trunks, layers, kLayer]
};

// Both heads on one trunk.
class WideMlp final : public Mlp {
 public:
  WideMlp(const NetworkConfig& config, const EnvSpec& env)
      : Mlp(config, env),
        first_(LayerOf("trunk.1")),
        second_(LayerOf("trunk.2")),
        policy_(LayerOf("policy.head")),
        value_(LayerOf("value.head")),
        norm1_(NormOf("trunk.1")),
        norm2_(NormOf("trunk.2")) {
    Prepare({&first_}, {&second_, &policy_, &value_});
    for (int member = 0; member < members(); ++member) {
      Scratch& scratch = scratch_.emplace_back();
      scratch.sums.resize(Floats(2 * kLayer));
      for (auto* buffer : {&scratch.active1, &scratch.active2}) buffer->resize(Floats(kLayer));
      if (!config.training) continue;
      scratch.grad_logits.resize(Floats(std::int64_t{kChunk} * actions_));
      for (auto* buffer : {&scratch.slope1, &scratch.slope2, &scratch.grad1, &scratch.grad2}) {
        buffer->resize(Floats(kLayer));
      }
    }
    if (config.training) saved_.resize(Floats(2 * kLayer * most_chunks()));
  }

 private:
  struct Norm {
    std::size_t scale, bias;  // offsets
  };
  struct Scratch {
    std::vector<float> sums;              // both layers before LayerNorm, of a call that keeps none
    std::vector<float> active1, active2;  // [states, units] after SiLU
    std::vector<float> slope1, slope2;    // SiLU'
    std::vector<float> grad1, grad2;
    std::vector<float> grad_logits;  // [states, A]
  };
  static constexpr std::int64_t kUnits = kWideMlpUnits;
  static constexpr std::int64_t kLayer = kChunk * kUnits;  // floats

  void ForwardChunk(const Chunk& chunk, bool keep, float* logits, float* value) override {
    Scratch& scratch = ScratchOf(chunk);
    const float* p = parameters_.data();
    const std::int64_t rows = chunk.states;
    float* sum1 = keep ? SavedOf(chunk) : scratch.sums.data();
    float* sum2 = sum1 + kLayer;
    first_.Forward(p, chunk.view, rows, sum1);
    Activate(norm1_, sum1, rows, scratch.active1.data(), nullptr);
    second_.Forward(p, scratch.active1.data(), rows, sum2);
    if (logits == nullptr && value == nullptr) return;
    Activate(norm2_, sum2, rows, scratch.active2.data(), nullptr);
    if (value != nullptr) value_.Forward(p, scratch.active2.data(), rows, value);
    if (logits == nullptr) return;
    policy_.Forward(p, scratch.active2.data(), rows, logits);
    Mask(chunk, logits);
  }

  void BackwardChunk(const Chunk& chunk, const float* grad_logits, const float* grad_value,
                     float* gradient) override {
    Scratch& scratch = ScratchOf(chunk);
    const std::int64_t rows = chunk.states;
    const float* sum1 = SavedOf(chunk);
    const float* sum2 = sum1 + kLayer;
    float* active1 = scratch.active1.data();
    float* active2 = scratch.active2.data();
    float* grad1 = scratch.grad1.data();
    float* grad2 = scratch.grad2.data();
    Activate(norm1_, sum1, rows, active1, scratch.slope1.data());
    Activate(norm2_, sum2, rows, active2, scratch.slope2.data());
    const float* grad_policy = WithoutMasked(chunk, grad_logits, scratch.grad_logits);
    policy_.BackwardWeights(active2, grad_policy, rows, gradient);
    value_.BackwardWeights(active2, grad_value, rows, gradient);
    value_.BackwardInput(grad_value, rows, grad1);
    policy_.BackwardInput(grad_policy, rows, grad2);
    for (std::int64_t i = 0; i < rows * kUnits; ++i) grad2[i] += grad1[i];
    ThroughActivation(norm2_, sum2, scratch.slope2.data(), rows, grad2, gradient);
    second_.BackwardWeights(active1, grad2, rows, gradient);
    second_.BackwardInput(grad2, rows, grad1);
    ThroughActivation(norm1_, sum1, scratch.slope1.data(), rows, grad1, gradient);
    first_.BackwardWeights(chunk.view, grad1, rows, gradient);
  }

  // sum [rows, units] -> active = silu(LayerNorm(sum)) and, unless null, the slope of that SiLU.
  void Activate(const Norm& norm, const float* sum, std::int64_t rows, float* active,
                float* slope) const {
    kernels_.layer_norm(sum, rows, kUnits, P(norm.scale), P(norm.bias), kEpsilon, active);
    kernels_.silu(active, rows, kUnits, active, slope);
  }
  // grad [rows, units] of Activate's result -> of its sum.
  void ThroughActivation(const Norm& norm, const float* sum, const float* slope, std::int64_t rows,
                         float* grad, float* gradient) const {
    MultiplyBy(slope, rows * kUnits, grad);
    kernels_.layer_norm_backward(grad, sum, rows, kUnits, P(norm.scale), kEpsilon, grad,
                                 gradient + norm.scale, gradient + norm.bias);
  }

  Norm NormOf(const std::string& layer) const {
    return {ParameterOf(layout_, layer + ".norm.scale").offset,
            ParameterOf(layout_, layer + ".norm.bias").offset};
  }
  float* SavedOf(const Chunk& chunk) { return saved_.data() + 2 * chunk.index * kLayer; }
  Scratch& ScratchOf(const Chunk& chunk) { return scratch_[Floats(chunk.member)]; }

  Linear first_, second_, policy_, value_;
  const Norm norm1_, norm2_;
  std::vector<Scratch> scratch_;  // one a member
  std::vector<float> saved_;      // [chunks of the last Forward, layers, kLayer]
};

}  // namespace

std::unique_ptr<Network> MakeMlp(const NetworkConfig& config, const EnvSpec& env) {
  if (MlpShapeOf(env.obs) == MlpShape::kSmall) return std::make_unique<SmallMlp>(config, env);
  return std::make_unique<WideMlp>(config, env);
}

}  // namespace tetrion
