#include "lib/nn/cuda/device_dreamer.h"

#include <string>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "lib/nn/cuda/dreamer_kernels.cuh"

namespace tetrion {
namespace {

ParameterLayout ActingLayout(const DreamerShape& shape) {
  if (shape.input == DreamerInput::kPixels) {
    throw Error(ExitCode::kUsage,
                "DreamerV3's encoder of pictures does not run on a device: choose a view of "
                "numbers or planes (--view), or leave --resident-lanes out and let actors play");
  }
  ParameterLayout layout = DreamerLayout(shape);
  std::erase_if(layout, [acting = ActingFloats(shape)](const ParameterInfo& info) {
    return info.offset >= acting;
  });
  return layout;
}

DreamerActingWeights WeightsOf(const ParameterLayout& layout, const DeviceParameters& parameters,
                               const DreamerShape& shape) {
  const auto piece = [&](const std::string& name) {
    for (const ParameterInfo& info : layout) {
      if (info.name == name) return parameters.Piece(info);
    }
    return cuda::DeviceSpan<const float>();
  };
  const auto layer = [&](const std::string& name) {
    return DreamerLayer{piece(name + ".weight"), piece(name + ".bias"), piece(name + ".scale"),
                        piece(name + ".shift")};
  };
  DreamerActingWeights weights;
  for (int i = 0; i < kMlpLayers; ++i) {
    weights.encoder[i] = layer("encoder." + std::to_string(i));
    weights.actor[i] = layer("actor." + std::to_string(i));
  }
  weights.core_deter = layer("core.deter");
  weights.core_stoch = layer("core.stoch");
  weights.core_action = layer("core.action");
  weights.core_hidden = layer("core.hidden");
  weights.core_gates = layer("core.gates");
  weights.posterior = layer("posterior.0");
  weights.posterior_out = layer("posterior.out");
  weights.actor_out = layer("actor.out");
  weights.floats = static_cast<unsigned>(shape.floats);
  weights.actions = static_cast<unsigned>(shape.actions);
  weights.deter = static_cast<unsigned>(shape.size.deter);
  weights.units = static_cast<unsigned>(shape.size.units);
  weights.stoch = static_cast<unsigned>(shape.size.stoch);
  weights.classes = static_cast<unsigned>(shape.size.classes);
  weights.blocks = static_cast<unsigned>(shape.size.blocks);
  weights.symlog = shape.input == DreamerInput::kVector;
  weights.unimix = shape.unimix;
  return weights;
}

std::size_t PositiveLanes(int lanes) {
  TETRION_CHECK(lanes > 0, "a model acts for lanes");
  return static_cast<std::size_t>(lanes);
}

}  // namespace

DeviceDreamer::DeviceDreamer(const cuda::Device& device, const DreamerShape& shape,
                             std::uint64_t seed, int lanes)
    : layout_(ActingLayout(shape)),
      parameters_(device, FloatsOf(layout_)),
      weights_(WeightsOf(layout_, parameters_, shape)),
      deter_(device, PositiveLanes(lanes) * weights_.deter * sizeof(float), "recurrent states"),
      stoch_(device, PositiveLanes(lanes) * weights_.stoch, "sampled states"),
      action_(device, PositiveLanes(lanes) * sizeof(std::int32_t), "the lanes' last actions"),
      scratch_(device, PositiveLanes(lanes) * DreamerScratch(weights_).floats * sizeof(float),
               "what a model's layers hand on"),
      states_{{deter_.data<float>(), deter_.bytes() / sizeof(float)},
              {stoch_.data<std::uint8_t>(), stoch_.bytes()},
              {action_.data<std::int32_t>(), PositiveLanes(lanes)}} {
  std::vector<float> initial(FloatsOf(layout_));
  FillDreamerInitial(shape, seed, initial);
  cuda::Stream stream(device, "initial weights");
  Load(std::as_bytes(std::span(initial)), 0, stream);
  static_assert(kNoDreamerAction == -1, "all bits set");
  cuda::SetBytes(action_.data<std::uint8_t>(), 0xFF, action_.bytes(), stream);
  stream.Synchronize();
}

void DeviceDreamer::Load(std::span<const std::byte> blob, std::uint32_t version,
                         cuda::Stream& stream) {
  TETRION_CHECK(blob.size() == WeightsBytes(), "a blob of this model");
  TransposeWeights(layout_, blob, parameters_.Stage());
  parameters_.Publish(version, stream);
}

void DeviceDreamer::Step(const RowSlots& slots, const std::uint64_t* row, const DreamerDraws& draws,
                         const float* views, float* logits, cuda::Stream& stream) {
  const std::size_t lanes = states_.action.size();
  TETRION_CHECK(slots.lanes == lanes, "rows of the lanes that the model has states for");
  cuda::Launch(stream, StepDreamer, slots.lanes, kDreamerThreads, 0, weights_, slots, row, draws,
               cuda::DeviceSpan<const float>(views, lanes * weights_.floats), states_,
               cuda::DeviceSpan<float>(scratch_.data<float>(), scratch_.bytes() / sizeof(float)),
               cuda::DeviceSpan<float>(logits, lanes * weights_.actions));
}

}  // namespace tetrion
