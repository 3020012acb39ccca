#include "lib/nn/dreamer/dreamer_layers.h"

#include <utility>

#include "lib/core/check.h"
#include "lib/nn/dreamer/primitives.h"

namespace tetrion {

using torch::Tensor;

DreamerTensors::DreamerTensors(const ParameterLayout& layout, std::size_t offset,
                               std::span<float> parameters, std::span<float> gradients,
                               torch::Device device) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  TETRION_CHECK(gradients.empty() || gradients.size() == parameters.size(),
                "one gradient a parameter");
  for (const ParameterInfo& info : layout) {
    if (info.offset < offset || info.offset + info.size > offset + parameters.size()) continue;
    Tensor tensor =
        torch::from_blob(parameters.data() + (info.offset - offset), info.shape, options);
    if (!gradients.empty()) {
      tensor.requires_grad_(true);
      tensor.mutable_grad() =
          torch::from_blob(gradients.data() + (info.offset - offset), info.shape, options);
    }
    tensors_.emplace(info.name, std::move(tensor));
  }
}

Tensor DreamerTensors::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Tensor() : found->second;
}

DreamerDense::DreamerDense(const DreamerTensors& tensors, const std::string& name)
    : weight(tensors.Find(name + ".weight")),
      bias(tensors.Find(name + ".bias")),
      scale(tensors.Find(name + ".scale")),
      shift(tensors.Find(name + ".shift")) {}

Tensor DreamerDense::operator()(const Tensor& x) const {
  return HiddenLayer(x, weight, bias, scale, shift, steps);
}

Tensor DreamerDense::Activate(const Tensor& x) const {
  return NormSilu(x, scale, shift, steps);
}

DreamerDense DreamerDense::OverSteps() const {
  DreamerDense layer = *this;
  layer.steps = GatherSlopes(weight, bias, scale);
  return layer;
}

DreamerMlp::DreamerMlp(const DreamerTensors& tensors, const std::string& module,
                       std::int64_t count) {
  for (std::int64_t layer = 0; layer < count; ++layer) {
    layers.emplace_back(tensors, module + "." + std::to_string(layer));
  }
}

Tensor DreamerMlp::operator()(Tensor x) const {
  for (const DreamerDense& layer : layers) x = layer(x);
  return x;
}

DreamerHead::DreamerHead(const DreamerTensors& tensors, const std::string& module,
                         std::int64_t layers)
    : hidden(tensors, module, layers),
      weight(tensors.Find(module + ".out.weight")),
      bias(tensors.Find(module + ".out.bias")) {}

Tensor DreamerHead::operator()(const Tensor& x) const {
  return Linear(hidden(x), weight, bias);
}

DreamerHead MakeDreamerCritic(const DreamerShape& shape, std::span<float> parameters,
                              std::span<float> gradients, torch::Device device) {
  const ParameterLayout layout = DreamerLayout(shape);
  const DreamerSlice slice = DreamerModule(layout, "value");
  TETRION_CHECK(parameters.size() == slice.size, "one value a parameter of the critic");
  return {DreamerTensors(layout, slice.offset, parameters, gradients, device), "value", kMlpLayers};
}

}  // namespace tetrion
