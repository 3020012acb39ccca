#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/cuda/device.h"
#include "lib/frame/specs.h"
#include "lib/nn/cuda/device_parameters.h"
#include "lib/nn/cuda/mlp_weights.h"
#include "lib/nn/mlp.h"

namespace tetrion {

// The policy of network `mlp` in device memory, with the parameters of lib/nn/mlp.h: view ->
// logits. It computes no value.
//
// Thread role: one thread. Nothing is allocated after construction.
class DeviceMlp {
 public:
  // Lanes that a block of the kernel works on: few, so that a small number of lanes spreads over a
  // device, or many, so that weights are read less often.
  enum class BlockLanes : std::uint8_t { k8, k32 };
  static BlockLanes BlockLanesFor(int lanes);

  // Initial weights are those of MakeNetwork with this seed, version 0. Waits for the device.
  DeviceMlp(const cuda::Device& device, const EnvSpec& env, std::uint64_t seed,
            BlockLanes block_lanes);

  // Bytes of a blob: the trainer's parameters, weights [out, in], the value's included.
  std::size_t WeightsBytes() const { return FloatsOf(layout_) * sizeof(float); }
  // Takes a blob of that size behind the stream's work; the blob is read before it returns.
  void Load(std::span<const std::byte> blob, std::uint32_t version, cuda::Stream& stream);
  const DeviceParameters& parameters() const { return parameters_; }

  // Enqueues view [n, F] f32 -> logits [A, n] f32, both in device memory; masks are the caller's
  // to apply. May be captured.
  void Logits(const float* view, int n, float* logits, cuda::Stream& stream) const;

 private:
  const ParameterLayout layout_;
  const MlpShape shape_;
  const BlockLanes block_lanes_;
  DeviceParameters parameters_;
  const MlpWeights weights_;
};

}  // namespace tetrion
