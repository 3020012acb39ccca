#pragma once

#include <cstdint>
#include <span>

#include "lib/nn/dreamer/step_slopes.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// What DreamerV3's model and losses are made of: functions of tensors, differentiable unless said
// otherwise. f32 on the CPU takes kernels of our own where many small operations would cost more
// than their arithmetic; any other tensor takes the library's operations.

// sign(x) ln(1 + |x|), and its inverse.
torch::Tensor Symlog(const torch::Tensor& x);
torch::Tensor Symexp(const torch::Tensor& x);

// The 255 values that two-hot distributions range over, ascending: symexp(-20 + 20 i / 127) below
// 0, and its mirror image. Raw values, not their symlog.
std::span<const float> DreamerBins();

// Cross-entropy of logits [..., 255] with the two bins next to `target` [...] -> [...]. The target
// is a constant. With `second` the loss of both targets, added.
torch::Tensor TwoHotLoss(const torch::Tensor& logits, const torch::Tensor& target,
                         const torch::Tensor& second = {});
// The mean of logits [..., 255] -> [...]; exactly 0 for uniform ones. Not differentiable on
// purpose: means are targets.
torch::Tensor TwoHotMean(const torch::Tensor& logits);

// x / sqrt(mean(x^2) + epsilon) * scale over the last dimension; scale [W].
torch::Tensor RmsNorm(const torch::Tensor& x, const torch::Tensor& scale);

// Layers. `steps`, of the same parameters, gathers their slopes where a sequence takes a layer step
// by step; x is [N, ...] then.

// silu(norm(x)): LayerNorm where `shift` is defined, else RMSNorm.
torch::Tensor NormSilu(const torch::Tensor& x, const torch::Tensor& scale,
                       const torch::Tensor& shift = {}, const StepSlopes& steps = {});

// x [..., in] W^T + b for weight [out, in] and bias [out] -> [..., out]; of a hidden layer the
// NormSilu of it.
torch::Tensor Linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const StepSlopes& steps = {});
torch::Tensor HiddenLayer(const torch::Tensor& x, const torch::Tensor& weight,
                          const torch::Tensor& bias, const torch::Tensor& scale,
                          const torch::Tensor& shift, const StepSlopes& steps = {});

// x [..., in] in G blocks, each times its own matrix: weight [G, in/G, out/G], bias [out] -> [...,
// out]. With `shared` [N, X], then x is [N, in], a block's input is (its part of x, all of shared):
// weight [G, in/G + X, out/G].
torch::Tensor BlockLinear(const torch::Tensor& x, const torch::Tensor& weight,
                          const torch::Tensor& bias, const torch::Tensor& shared = {},
                          const StepSlopes& steps = {});

// Gathers the slopes of a layer of these; `bias` and `scale` may be undefined.
StepSlopes GatherSlopes(const torch::Tensor& weight, const torch::Tensor& bias,
                        const torch::Tensor& scale = {});

// The recurrent state after the gates [..., 3 D], which lie block by block as (reset, candidate,
// update): u tanh(r c) + (1 - u) deter with u = sigmoid(update - 1). deter [..., D].
torch::Tensor GruStep(const torch::Tensor& gates, const torch::Tensor& deter, std::int64_t blocks);

// log((1 - share) softmax(logits) + share / C) over the last dimension.
torch::Tensor UnimixLogProbs(const torch::Tensor& logits, double share);

// The one-hot sample [..., C] exactly, with the gradient of its probabilities.
torch::Tensor StraightThrough(const torch::Tensor& sample, const torch::Tensor& log_probs);

// KL(p || q) of log-probabilities [..., S, C], added over the groups -> [...].
torch::Tensor CategoricalKl(const torch::Tensor& log_p, const torch::Tensor& log_q);

// The two halves of the KL loss, each at least `free_nats`: gradients reach the prior through
// `dynamics` alone, the posterior through `representation` alone.
struct KlTerms {
  torch::Tensor dynamics, representation;  // [...]
};
KlTerms KlLosses(const torch::Tensor& posterior, const torch::Tensor& prior, double free_nats);

}  // namespace tetrion
