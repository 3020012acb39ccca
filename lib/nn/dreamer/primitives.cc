#include "lib/nn/dreamer/primitives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "lib/core/mutex.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/dreamer/layer_nodes.h"
#include "lib/nn/dreamer/linear_kernels.h"
#include "lib/nn/dreamer/mix_legal.h"
#include "lib/nn/dreamer/step_kernels.h"
#include "lib/nn/dreamer/update_nodes.h"

namespace tetrion {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int kBins = kDreamerBins;
constexpr int kMiddle = kBins / 2;
constexpr std::int64_t kRowsForAThread = 128;  // of two-hot logits, gates or classes

bool IsPlain(const Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat32 && CurrentUpdateKernels() == nullptr;
}

std::array<float, kBins> MakeBins() {
  std::array<float, kBins> bins{};
  for (int i = 0; i < kMiddle; ++i) {
    const double magnitude = std::expm1(20.0 - 20.0 * i / kMiddle);
    bins[static_cast<std::size_t>(i)] = static_cast<float>(-magnitude);
    bins[static_cast<std::size_t>(kBins - 1 - i)] = static_cast<float>(magnitude);
  }
  return bins;
}

// The two bins next to a value, and what each counts. Beyond the last bin both are that bin.
struct TwoHot {
  std::int64_t below = 0, above = 0;
  float below_weight = 0, above_weight = 0;
};

TwoHot TwoHotOf(float value) {
  const std::span<const float> bins = DreamerBins();
  const auto reached = std::upper_bound(bins.begin(), bins.end(), value) - bins.begin();
  TwoHot hot;
  hot.below = std::max<std::int64_t>(reached - 1, 0);
  hot.above = std::min<std::int64_t>(reached, kBins - 1);
  double to_below = 1, to_above = 1;
  if (hot.below != hot.above) {
    to_below = std::abs(static_cast<double>(bins[static_cast<std::size_t>(hot.below)]) - value);
    to_above = std::abs(static_cast<double>(bins[static_cast<std::size_t>(hot.above)]) - value);
  }
  if (std::isnan(value)) to_below = to_above = value;  // the loss says so
  hot.below_weight = static_cast<float>(to_above / (to_above + to_below));
  hot.above_weight = static_cast<float>(to_below / (to_above + to_below));
  return hot;
}

// logits [N, 255], targets [K, N] -> [N], the losses of all K targets added.
class TwoHotNode : public Function<TwoHotNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets) {
    const Tensor log_probs = torch::log_softmax(logits, -1);
    const Tensor loss = torch::empty({logits.size(0)}, logits.options());
    const float* row = log_probs.const_data_ptr<float>();
    const float* target = targets.const_data_ptr<float>();
    float* out = loss.mutable_data_ptr<float>();
    const std::int64_t rows = logits.size(0), count = targets.size(0);
    ForRows(rows, kRowsForAThread, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const float* log_prob = row + n * kBins;
        float sum = 0;
        for (std::int64_t k = 0; k < count; ++k) {
          const TwoHot hot = TwoHotOf(target[k * rows + n]);
          sum -= hot.below_weight * log_prob[hot.below] + hot.above_weight * log_prob[hot.above];
        }
        out[n] = sum;
      }
    });
    context->save_for_backward({log_probs, targets});
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& targets = saved[1];
    const Tensor slope = gradients[0].contiguous();
    const std::int64_t rows = slope.size(0), count = targets.size(0);
    const Tensor grad = saved[0].exp().mul_(slope.unsqueeze(1) * count);
    const float* target = targets.const_data_ptr<float>();
    const float* g = slope.const_data_ptr<float>();
    float* row = grad.mutable_data_ptr<float>();
    ForRows(rows, kRowsForAThread, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        float* slopes = row + n * kBins;
        for (std::int64_t k = 0; k < count; ++k) {
          const TwoHot hot = TwoHotOf(target[k * rows + n]);
          slopes[hot.below] -= g[n] * hot.below_weight;
          slopes[hot.above] -= g[n] * hot.above_weight;
        }
      }
    });
    return {grad, Tensor()};
  }
};

// The bins where a device has them, copied there once.
class BinsOnDevices {
 public:
  Tensor On(const torch::Device& device) TETRION_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    Tensor& bins = bins_[device.str()];
    if (!bins.defined()) {
      bins = torch::from_blob(const_cast<float*>(DreamerBins().data()), {kBins}).clone().to(device);
    }
    return bins;
  }

 private:
  Mutex mu_;
  std::map<std::string, Tensor> bins_ TETRION_GUARDED_BY(mu_);  // by the device's name
};

Tensor BinsOn(const torch::Device& device) {
  static BinsOnDevices bins;
  return bins.On(device);
}

// As TwoHotNode, by operations that know no values on the host.
Tensor TwoHotByLibrary(const Tensor& logits, const Tensor& targets) {
  const Tensor bins = BinsOn(logits.device());
  const Tensor log_probs = torch::log_softmax(logits, -1);
  // [K, N]. A target that is not a number makes a loss that is none.
  const Tensor reached = torch::bucketize(targets, bins, /*out_int32=*/false, /*right=*/true);
  const Tensor below = (reached - 1).clamp_min(0), above = reached.clamp_max(kBins - 1);
  const auto distance = [&](const Tensor& bin) {
    return torch::where(below == above, torch::ones_like(targets),
                        (bins.index_select(0, bin.flatten()).view_as(targets) - targets).abs());
  };
  const Tensor to_below = distance(below), to_above = distance(above);
  const Tensor share = to_below / (to_below + to_above);
  const auto of = [&](const Tensor& bin) { return log_probs.gather(1, bin.t()).t(); };
  return -((1.0 - share) * of(below) + share * of(above) + 0.0 * targets).sum(0);
}

class StraightThroughNode : public Function<StraightThroughNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& sample, const Tensor& log_probs) {
    context->save_for_backward({log_probs});
    return sample.clone();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {Tensor(), context->get_saved_variables()[0].exp() * gradients[0]};
  }
};

// log((1 - u) softmax(l) + u / C): the gradient needs the softmax and the mixture alone.
class UnimixNode : public Function<UnimixNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, double share) {
    const Tensor x = logits.contiguous();
    const Tensor softmax = torch::empty_like(x);
    const Tensor mixed = torch::empty_like(x);
    const std::int64_t classes = x.size(-1);
    ForRows(x.numel() / classes, kRowsForAThread, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * classes;
      UnimixForward(x.const_data_ptr<float>() + at, end - begin, classes, static_cast<float>(share),
                    softmax.mutable_data_ptr<float>() + at, mixed.mutable_data_ptr<float>() + at);
    });
    context->save_for_backward({softmax, mixed});
    context->saved_data["share"] = share;
    return mixed.log();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& mixed = saved[1];
    const Tensor grad = gradients[0].contiguous();
    const Tensor out = torch::empty_like(mixed);
    const auto share = static_cast<float>(context->saved_data["share"].toDouble());
    const std::int64_t classes = mixed.size(-1);
    ForRows(mixed.numel() / classes, kRowsForAThread, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * classes;
      UnimixBackward(grad.const_data_ptr<float>() + at, saved[0].const_data_ptr<float>() + at,
                     mixed.const_data_ptr<float>() + at, end - begin, classes, share,
                     out.mutable_data_ptr<float>() + at);
    });
    return {out, Tensor()};
  }
};

// gates [N, G, 3, D/G] and deter [N, D], flat in any way, -> as deter.
class GruNode : public Function<GruNode> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gates, const Tensor& deter,
                        std::int64_t blocks) {
    const Tensor all = gates.contiguous(), old = deter.contiguous();
    const Tensor parts = torch::empty_like(all);
    const std::int64_t width = old.size(-1) / blocks;
    context->save_for_backward({all, old, parts});
    context->saved_data["width"] = width;
    return Step(all, old, width, parts.mutable_data_ptr<float>());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &gates = saved[0], &deter = saved[1];
    const Tensor grad = gradients[0].contiguous();
    const Tensor grad_gates = torch::empty_like(gates);
    const Tensor grad_deter = torch::empty_like(deter);
    const std::int64_t width = context->saved_data["width"].toInt();
    ForRows(deter.numel() / width, kRowsForAThread, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * width;
      GruBackward(grad.const_data_ptr<float>() + at, gates.const_data_ptr<float>() + 3 * at,
                  deter.const_data_ptr<float>() + at, saved[2].const_data_ptr<float>() + 3 * at,
                  end - begin, width, grad_gates.mutable_data_ptr<float>() + 3 * at,
                  grad_deter.mutable_data_ptr<float>() + at);
    });
    return {grad_gates, grad_deter, Tensor()};
  }

  // The next deter of contiguous gates and deter; `parts` for the backward pass, null: none.
  static Tensor Step(const Tensor& gates, const Tensor& deter, std::int64_t width, float* parts) {
    const Tensor out = torch::empty_like(deter);
    ForRows(deter.numel() / width, kRowsForAThread, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * width;
      GruForward(gates.const_data_ptr<float>() + 3 * at, deter.const_data_ptr<float>() + at,
                 end - begin, width, out.mutable_data_ptr<float>() + at,
                 parts == nullptr ? nullptr : parts + 3 * at);
    });
    return out;
  }
};

}  // namespace

Tensor Symlog(const Tensor& x) {
  return torch::copysign(torch::log1p(torch::abs(x)), x);
}

Tensor Symexp(const Tensor& x) {
  return torch::copysign(torch::expm1(torch::abs(x)), x);
}

std::span<const float> DreamerBins() {
  static const std::array<float, kBins> bins = MakeBins();
  return bins;
}

Tensor TwoHotLoss(const Tensor& logits, const Tensor& target, const Tensor& second) {
  const Tensor rows = logits.reshape({-1, kBins});
  const Tensor first = target.detach().reshape({1, -1});
  const Tensor targets =
      second.defined() ? torch::cat({first, second.detach().reshape({1, -1})}) : first;
  if (!IsPlain(logits)) return TwoHotByLibrary(rows, targets).reshape(target.sizes());
  return TwoHotNode::apply(rows, targets.contiguous()).reshape(target.sizes());
}

Tensor TwoHotMean(const Tensor& logits) {
  const torch::NoGradGuard guard;
  const std::span<const float> upper = DreamerBins().subspan(kMiddle + 1);
  if (IsPlain(logits)) {
    const Tensor rows = logits.reshape({-1, kBins}).contiguous();
    const Tensor mean = torch::empty({rows.size(0)}, rows.options());
    ForRows(rows.size(0), kRowsForAThread, [&](std::int64_t begin, std::int64_t end) {
      TwoHotMeans(rows.const_data_ptr<float>() + begin * kBins, end - begin, upper,
                  mean.mutable_data_ptr<float>() + begin);
    });
    return mean.reshape(logits.sizes().slice(0, logits.dim() - 1));
  }
  const Tensor probs = torch::softmax(logits, -1);
  // Bin 128 + i is the negative of bin 126 - i.
  const Tensor bins = BinsOn(logits.device()).narrow(0, kMiddle + 1, kMiddle).to(logits.dtype());
  const Tensor excess =
      probs.narrow(-1, kMiddle + 1, kMiddle) - probs.narrow(-1, 0, kMiddle).flip(-1);
  return torch::matmul(excess, bins);
}

Tensor RmsNorm(const Tensor& x, const Tensor& scale) {
  return x * torch::rsqrt(torch::mean(x * x, -1, /*keepdim=*/true) + kNormEpsilon) * scale;
}

Tensor NormSilu(const Tensor& x, const Tensor& scale, const Tensor& shift,
                const StepSlopes& steps) {
  if (shift.defined()) {
    return torch::silu(torch::layer_norm(x, {x.size(-1)}, scale, shift, kNormEpsilon));
  }
  if (UpdateKernels* kernels = CurrentUpdateKernels()) {
    return NormSiluOnDevice(x, scale, *kernels, steps);
  }
  return IsPlain(x) ? NormSiluNode(x, scale, steps) : torch::silu(RmsNorm(x, scale));
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const StepSlopes& steps) {
  if (IsPlain(x)) return LayerNode(x, weight, bias, {}, steps);
  return steps.gathers() ? StepLinear(x, weight, bias, steps) : torch::linear(x, weight, bias);
}

Tensor HiddenLayer(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& scale,
                   const Tensor& shift, const StepSlopes& steps) {
  if (IsPlain(x) && !shift.defined()) return LayerNode(x, weight, bias, scale, steps);
  return NormSilu(Linear(x, weight, bias, steps), scale, shift, steps);
}

Tensor BlockLinear(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& shared,
                   const StepSlopes& steps) {
  const Tensor rows = x.reshape({-1, x.size(-1)});
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = bias.size(0);
  if (IsPlain(x)) return BlockLayerNode(rows, shared, weight, bias, steps).reshape(shape);
  if (steps.gathers()) return StepBlockLinear(rows, shared, weight, bias, steps).reshape(shape);
  return (BlockProduct(rows, shared, weight) + bias).reshape(shape);
}

StepSlopes GatherSlopes(const Tensor& weight, const Tensor& bias, const Tensor& scale) {
  return {weight, bias, scale, IsPlain(weight)};
}

Tensor GruStep(const Tensor& gates, const Tensor& deter, std::int64_t blocks) {
  if (UpdateKernels* kernels = CurrentUpdateKernels()) {
    return GruStepOnDevice(gates, deter, blocks, *kernels);
  }
  if (IsPlain(gates)) {
    if (torch::GradMode::is_enabled()) return GruNode::apply(gates, deter, blocks);
    return GruNode::Step(gates.contiguous(), deter.contiguous(), deter.size(-1) / blocks, nullptr);
  }
  std::vector<std::int64_t> shape = deter.sizes().vec();
  const std::int64_t width = shape.back() / blocks;
  shape.back() = blocks;
  shape.push_back(width);
  std::vector<std::int64_t> split = shape;
  split.insert(split.end() - 1, 3);
  const std::vector<Tensor> parts = gates.reshape(split).unbind(-2);
  const Tensor candidate = torch::tanh(torch::sigmoid(parts[0]) * parts[1]);
  const Tensor update = torch::sigmoid(parts[2] - 1.0);
  return torch::lerp(deter.reshape(shape), candidate, update).reshape(deter.sizes());
}

Tensor UnimixLogProbs(const Tensor& logits, double share) {
  if (IsPlain(logits)) return UnimixNode::apply(logits, share);
  const double uniform = share / static_cast<double>(logits.size(-1));
  Tensor mixed = (1.0 - share) * torch::softmax(logits, -1) + uniform;
  if (share == 0) mixed = mixed.clamp_min(kLeastChance);  // NaN stays NaN
  return torch::log(mixed);
}

Tensor StraightThrough(const Tensor& sample, const Tensor& log_probs) {
  return StraightThroughNode::apply(sample, log_probs);
}

Tensor CategoricalKl(const Tensor& log_p, const Tensor& log_q) {
  return (log_p.exp() * (log_p - log_q)).sum({-2, -1});
}

KlTerms KlLosses(const Tensor& posterior, const Tensor& prior, double free_nats) {
  return {torch::clamp_min(CategoricalKl(posterior.detach(), prior), free_nats),
          torch::clamp_min(CategoricalKl(posterior, prior.detach()), free_nats)};
}

}  // namespace tetrion
