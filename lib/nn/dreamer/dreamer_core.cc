#include "lib/nn/dreamer/dreamer_core.h"

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {

using torch::Tensor;

DreamerCore::DreamerCore(const DreamerShape& shape, const DreamerTensors& tensors)
    : size_(shape.size),
      deter_(tensors, "core.deter"),
      stoch_(tensors, "core.stoch"),
      action_(tensors, "core.action"),
      hidden_(tensors, "core.hidden"),
      gates_weight_(tensors.Find("core.gates.weight")),
      gates_bias_(tensors.Find("core.gates.bias")) {}

Tensor DreamerCore::operator()(const Tensor& deter, const Tensor& stoch,
                               const Tensor& action) const {
  // An action of a length above 1 counts as a direction; one-hot actions are as they were.
  const Tensor bounded = action / action.detach().abs().clamp_min(1.0);
  const Tensor x = torch::cat({deter_(deter), stoch_(stoch.flatten(-2)), action_(bounded)}, -1);
  const Tensor hidden = hidden_.Activate(BlockLinear(deter, hidden_.weight, hidden_.bias, x));
  return GruStep(BlockLinear(hidden, gates_weight_, gates_bias_), deter, size_.blocks);
}

DreamerPosterior::DreamerPosterior(const DreamerShape& shape, const DreamerTensors& tensors)
    : deter_(shape.size.deter), head_(tensors, "posterior", kHeadLayers) {}

Tensor DreamerPosterior::operator()(const Tensor& deter, const Tensor& embed) const {
  const DreamerDense& layer = head_.hidden.layers.front();
  const Tensor of_deter = layer.weight.narrow(1, 0, deter_);
  const Tensor of_embed = layer.weight.narrow(1, deter_, embed.size(-1));
  const Tensor sum = torch::linear(deter, of_deter) + torch::linear(embed, of_embed, layer.bias);
  return Linear(layer.Activate(sum), head_.weight, head_.bias);
}

}  // namespace tetrion
