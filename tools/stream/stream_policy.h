#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/policy/policy.h"
#include "lib/region_v2/compat_kernel.h"

namespace tetrion {

// Chooses the kernel's actions. One thread.
class StreamPolicy {
 public:
  virtual ~StreamPolicy() = default;
  // `episode` counts from 0. nullopt when the weights that the observation names are gone: a new
  // host has begun, reset it. Throws Error(kConfig) when the policy's output is not finite.
  virtual std::optional<std::uint16_t> Act(const CompatObs& obs, std::uint64_t episode) = 0;
};

// Pushes right where weights . observation > 0. The weights are those that the host uploaded under
// the observation's model id, or `fallback` where it names none. `kernel` must outlive it.
class LinearStreamPolicy final : public StreamPolicy {
 public:
  LinearStreamPolicy(const CompatKernel& kernel, const std::array<float, 4>& fallback)
      : kernel_(kernel), fallback_(fallback), weights_(fallback) {}

  std::optional<std::uint16_t> Act(const CompatObs& obs, std::uint64_t episode) override;

 private:
  const CompatKernel& kernel_;
  const std::array<float, 4> fallback_;
  std::array<float, 4> weights_;
  float model_id_ = 0.0F;  // whose weights_ these are
};

// Any policy of lib/policy over the CartPole record, which the observation is.
class PolicyStreamPolicy final : public StreamPolicy {
 public:
  explicit PolicyStreamPolicy(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  std::optional<std::uint16_t> Act(const CompatObs& obs, std::uint64_t episode) override;

 private:
  std::unique_ptr<Policy> policy_;
};

// The newest checkpoint of a CartPole run, most probable action. Throws Error: kUsage no such run,
// or a program without libtorch; kConfig no usable checkpoint or another environment.
std::unique_ptr<Policy> LoadCheckpointPolicy(const std::string& runs_dir, const std::string& run);

}  // namespace tetrion
