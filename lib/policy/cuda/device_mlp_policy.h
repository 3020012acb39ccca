#pragma once

#include "lib/nn/cuda/device_mlp.h"
#include "lib/policy/cuda/device_policy.h"
#include "lib/policy/cuda/not_finite_rows.h"

namespace tetrion {

// The twin of NetworkPolicy with network `mlp`: records -> view -> logits -> masked softmax ->
// draw, a kernel each.
class DeviceMlpPolicy final : public DevicePolicy {
 public:
  // Waits for the device. CHECKs that the configuration has an expander.
  DeviceMlpPolicy(const cuda::Device& device, const DevicePolicyConfig& config, const EnvSpec& env);

  void Decide(const RowSlots& slots, const std::uint64_t* row, const std::uint64_t* token_ids,
              const std::uint32_t* steps, cuda::Stream& stream) override;
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                         cuda::Stream& stream) override;
  std::size_t WeightsBytes() const override { return network_.WeightsBytes(); }
  std::uint32_t version() const override { return network_.parameters().version(); }
  void EnqueueCheck(cuda::Stream& stream) override { not_finite_.EnqueueCheck(stream); }
  std::optional<std::uint64_t> TakeCheck() override { return not_finite_.TakeCheck(); }

 private:
  const DevicePolicyConfig config_;
  const EnvSpec env_;
  DeviceMlp network_;
  NotFiniteRows not_finite_;
  cuda::DeviceBuffer view_;    // [M, F] f32
  cuda::DeviceBuffer logits_;  // [A, M] f32
};

}  // namespace tetrion
