#include "lib/policy/cuda/device_random_policy.h"

#include "lib/cuda/launch.h"
#include "lib/policy/cuda/decide_uniformly.cuh"

namespace tetrion {

DeviceRandomPolicy::DeviceRandomPolicy(const cuda::Device& device, const DevicePolicyConfig& config,
                                       const EnvSpec& env)
    : config_(config), env_(env), parameters_(device, 0) {
  cuda::Stream stream(device, "first version");
  parameters_.Publish(0, stream);
  stream.Synchronize();
}

void DeviceRandomPolicy::Decide(const RowSlots& slots, const std::uint64_t* row,
                                const std::uint64_t* token_ids, const std::uint32_t* steps,
                                cuda::Stream& stream) {
  const DecidedRow decided =
      RowToDecide(slots, row, token_ids, steps, config_, env_, parameters_.device_version());
  cuda::Launch(stream, DecideUniformly, DecideBlocks(decided), kDecideThreads, 0, decided);
}

LoadResult DeviceRandomPolicy::LoadWeights(std::span<const std::byte> /*blob*/,
                                           std::uint32_t version, cuda::Stream& stream) {
  (void)parameters_.Stage();
  parameters_.Publish(version, stream);
  return LoadResult::kLoaded;
}

}  // namespace tetrion
