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

Tensor DreamerCore::ActionTerm(const Tensor& action) const {
  // An action of a length above 1 counts as a direction; one-hot actions are as they were.
  return action_(action / action.detach().abs().clamp_min(1.0));
}

Tensor DreamerCore::operator()(const Tensor& deter, const Tensor& stoch,
                               const Tensor& action_term) const {
  const Tensor x = torch::cat({deter_(deter), stoch_(stoch.flatten(-2)), action_term}, -1);
  const Tensor hidden =
      hidden_.Activate(BlockLinear(deter, hidden_.weight, hidden_.bias, x, hidden_.steps));
  const Tensor gates = BlockLinear(hidden, gates_weight_, gates_bias_, {}, gates_steps_);
  return GruStep(gates, deter, size_.blocks);
}

DreamerCore DreamerCore::OverSteps() const {
  DreamerCore core = *this;
  core.deter_ = deter_.OverSteps();
  core.stoch_ = stoch_.OverSteps();
  core.hidden_ = hidden_.OverSteps();
  core.gates_steps_ = GatherSlopes(gates_weight_, gates_bias_);
  return core;
}

DreamerPosterior::DreamerPosterior(const DreamerShape& shape, const DreamerTensors& tensors)
    : deter_(shape.size.deter), head_(tensors, "posterior", kHeadLayers) {}

Tensor DreamerPosterior::EmbedTerm(const Tensor& embed) const {
  const DreamerDense& layer = head_.hidden.layers.front();
  return torch::linear(embed, layer.weight.narrow(1, deter_, embed.size(-1)), layer.bias);
}

Tensor DreamerPosterior::operator()(const Tensor& deter, const Tensor& embed_term) const {
  if (of_deter_.steps.gathers()) {
    const Tensor sum = StepLinear(deter, of_deter_.weight, {}, of_deter_.steps) + embed_term;
    return Linear(of_deter_.Activate(sum), head_.weight, head_.bias, out_steps_);
  }
  const DreamerDense& layer = head_.hidden.layers.front();
  const Tensor sum = torch::linear(deter, layer.weight.narrow(1, 0, deter_)) + embed_term;
  return Linear(layer.Activate(sum), head_.weight, head_.bias);
}

DreamerPosterior DreamerPosterior::OverSteps() const {
  DreamerPosterior posterior = *this;
  DreamerDense& layer = posterior.of_deter_ = head_.hidden.layers.front();
  layer.weight = layer.weight.narrow(1, 0, deter_).contiguous();
  layer.bias = Tensor();  // the view's term has it
  layer = layer.OverSteps();
  posterior.out_steps_ = GatherSlopes(head_.weight, head_.bias);
  return posterior;
}

}  // namespace tetrion
