#include "lib/nn/cuda/device_mlp.h"

#include <string>
#include <vector>

#include "lib/core/check.h"
#include "lib/cuda/launch.h"
#include "lib/nn/cuda/mlp_kernels.cuh"

namespace tetrion {
namespace {

// A device of 132 multiprocessors has a few blocks for each from here on.
constexpr int kManyLanes = 8192;

MlpWeights WeightsOf(const ParameterLayout& layout, const DeviceParameters& parameters,
                     const EnvSpec& env) {
  const auto piece = [&](const std::string& name) {
    return parameters.Piece(ParameterOf(layout, name));
  };
  const auto linear = [&](const std::string& name) {
    return MlpLayer{piece(name + ".weight"), piece(name + ".bias"), {}, {}};
  };
  const bool wide = MlpShapeOf(env.obs) == MlpShape::kWide;
  MlpWeights weights;
  for (int i = 0; i < 2; ++i) {
    const std::string name = (wide ? "trunk." : "policy.") + std::to_string(i + 1);
    weights.layer[i] = linear(name);
    if (!wide) continue;
    weights.layer[i].norm_scale = piece(name + ".norm.scale");
    weights.layer[i].norm_bias = piece(name + ".norm.bias");
  }
  weights.head = linear("policy.head");
  weights.inputs = static_cast<unsigned>(env.obs.view_floats);
  weights.actions = static_cast<unsigned>(env.action.count);
  return weights;
}

template <typename Plan>
void LaunchLogits(const MlpWeights& weights, const float* view, int n, float* logits,
                  cuda::Stream& stream) {
  const auto lanes = static_cast<unsigned>(n);
  cuda::Launch(stream, MlpLogits<Plan>, cuda::BlocksFor(lanes, Plan::kLanes), Plan::kThreads,
               Plan::kSharedBytes, weights,
               cuda::DeviceSpan<const float>(view, std::size_t{lanes} * weights.inputs), lanes,
               cuda::DeviceSpan<float>(logits, std::size_t{lanes} * weights.actions));
}

}  // namespace

DeviceMlp::BlockLanes DeviceMlp::BlockLanesFor(int lanes) {
  return lanes < kManyLanes ? BlockLanes::k8 : BlockLanes::k32;
}

DeviceMlp::DeviceMlp(const cuda::Device& device, const EnvSpec& env, std::uint64_t seed,
                     BlockLanes block_lanes)
    : layout_(MlpLayout(env)),
      shape_(MlpShapeOf(env.obs)),
      block_lanes_(block_lanes),
      parameters_(device, FloatsOf(layout_)),
      weights_(WeightsOf(layout_, parameters_, env)) {
  std::vector<float> initial(FloatsOf(layout_));
  FillInitial(layout_, seed, initial);
  cuda::Stream stream(device, "initial weights");
  Load(std::as_bytes(std::span(initial)), 0, stream);
  stream.Synchronize();
}

void DeviceMlp::Load(std::span<const std::byte> blob, std::uint32_t version, cuda::Stream& stream) {
  TETRION_CHECK(blob.size() == WeightsBytes(), "a blob of this network");
  TransposeWeights(layout_, blob, parameters_.Stage());
  parameters_.Publish(version, stream);
}

void DeviceMlp::Logits(const float* view, int n, float* logits, cuda::Stream& stream) const {
  const auto launch =
      shape_ == MlpShape::kWide
          ? (block_lanes_ == BlockLanes::k8 ? LaunchLogits<MlpPlan<kWideMlpUnits, 8>>
                                            : LaunchLogits<MlpPlan<kWideMlpUnits, 32>>)
          : (block_lanes_ == BlockLanes::k8 ? LaunchLogits<MlpPlan<kSmallMlpUnits, 8>>
                                            : LaunchLogits<MlpPlan<kSmallMlpUnits, 32>>);
  launch(weights_, view, n, logits, stream);
}

}  // namespace tetrion
