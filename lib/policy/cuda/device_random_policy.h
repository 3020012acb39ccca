#pragma once

#include "lib/nn/cuda/device_parameters.h"
#include "lib/policy/cuda/device_policy.h"

namespace tetrion {

// The twin of RandomPolicy: the same draws.
class DeviceRandomPolicy final : public DevicePolicy {
 public:
  // Waits for the device.
  DeviceRandomPolicy(const cuda::Device& device, const DevicePolicyConfig& config,
                     const EnvSpec& env);

  void Decide(const RowSlots& slots, const std::uint64_t* row, const std::uint64_t* token_ids,
              const std::uint32_t* steps, cuda::Stream& stream) override;
  // Has no weights: accepts anything; rows carry the version.
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                         cuda::Stream& stream) override;
  std::uint32_t version() const override { return parameters_.version(); }

 private:
  const DevicePolicyConfig config_;
  const EnvSpec env_;
  DeviceParameters parameters_;  // none but a version
};

}  // namespace tetrion
