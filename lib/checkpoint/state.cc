#include "lib/checkpoint/state.h"

#include <algorithm>
#include <cmath>

#include "lib/core/error.h"

namespace tetrion {
namespace {

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

const TrainerState::Tensor* FindTensor(const TrainerState& state, const std::string& name) {
  const auto found = std::find_if(state.tensors.begin(), state.tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == state.tensors.end() ? nullptr : &*found;
}

void ReadTensor(const TrainerState& state, const std::string& name,
                const std::vector<std::int64_t>& shape, std::span<float> values) {
  const TrainerState::Tensor* tensor = FindTensor(state, name);
  if (tensor == nullptr) {
    throw Error(ExitCode::kConfig, "the checkpoint has no tensor " + name +
                                       ": it belongs to another algorithm or network");
  }
  if (tensor->shape != shape || tensor->data.size() != values.size()) {
    throw Error(ExitCode::kConfig, "tensor " + name + " of the checkpoint has shape " +
                                       ShapeText(tensor->shape) + ", this network needs " +
                                       ShapeText(shape));
  }
  if (!std::all_of(tensor->data.begin(), tensor->data.end(),
                   [](float value) { return std::isfinite(value); })) {
    throw Error(ExitCode::kConfig,
                "tensor " + name + " of the checkpoint holds NaN or infinity: use an older one");
  }
  std::copy(tensor->data.begin(), tensor->data.end(), values.begin());
}

}  // namespace tetrion
