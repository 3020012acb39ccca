#pragma once

#include "lib/nn/cuda/device_dreamer.h"
#include "lib/policy/cuda/device_policy.h"
#include "lib/policy/cuda/not_finite_rows.h"

namespace tetrion {

// The twin of DreamerPolicy: records -> views -> the lanes' next states and the actor's logits ->
// mixed with the uniform distribution over legal actions -> draw. A lane whose state is not finite
// begins again from zeros.
class DeviceDreamerPolicy final : public DevicePolicy {
 public:
  // Waits for the device. CHECKs that the configuration has an expander and a model's shape. Throws
  // as DeviceDreamer.
  DeviceDreamerPolicy(const cuda::Device& device, const DevicePolicyConfig& config,
                      const EnvSpec& env);

  void Decide(const RowSlots& slots, const std::uint64_t* row, const std::uint64_t* token_ids,
              const std::uint32_t* steps, cuda::Stream& stream) override;
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                         cuda::Stream& stream) override;
  std::size_t WeightsBytes() const override { return model_.WeightsBytes(); }
  std::uint32_t version() const override { return model_.parameters().version(); }
  void EnqueueCheck(cuda::Stream& stream) override { not_finite_.EnqueueCheck(stream); }
  std::optional<std::uint64_t> TakeCheck() override { return not_finite_.TakeCheck(); }

 private:
  const DevicePolicyConfig config_;
  const EnvSpec env_;
  DeviceDreamer model_;
  NotFiniteRows not_finite_;
  cuda::DeviceBuffer view_;    // [M, F] f32
  cuda::DeviceBuffer logits_;  // [A, M] f32
};

}  // namespace tetrion
