#include "lib/rl/trainer_state.h"

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

void AppendTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                   std::span<const float> values, TrainerState& state) {
  for (const ParameterInfo& info : layout) {
    const std::span<const float> piece = values.subspan(info.offset, info.size);
    state.tensors.push_back({prefix + info.name, info.shape, {piece.begin(), piece.end()}});
  }
}

void ReadTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                 const TrainerState& state, std::span<float> values) {
  for (const ParameterInfo& info : layout) {
    const std::string name = prefix + info.name;
    const auto tensor =
        std::find_if(state.tensors.begin(), state.tensors.end(),
                     [&](const TrainerState::Tensor& candidate) { return candidate.name == name; });
    if (tensor == state.tensors.end()) {
      throw Error(ExitCode::kConfig, "the checkpoint has no tensor " + name +
                                         ": it belongs to another algorithm or network");
    }
    if (tensor->shape != info.shape || tensor->data.size() != info.size) {
      throw Error(ExitCode::kConfig, "tensor " + name + " of the checkpoint has shape " +
                                         ShapeText(tensor->shape) + ", this network needs " +
                                         ShapeText(info.shape));
    }
    if (!std::all_of(tensor->data.begin(), tensor->data.end(),
                     [](float value) { return std::isfinite(value); })) {
      throw Error(ExitCode::kConfig,
                  "tensor " + name + " of the checkpoint holds NaN or infinity: use an older one");
    }
    std::copy(tensor->data.begin(), tensor->data.end(),
              values.begin() + static_cast<std::ptrdiff_t>(info.offset));
  }
}

}  // namespace tetrion
