#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tetrion {

// Named float tensors and counters of a trainer, as they go into a checkpoint. A plain value.
struct TrainerState {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> data;
  };
  std::vector<Tensor> tensors;
  std::map<std::string, std::int64_t> counters;  // "updates", "policy_version", ...
};

// A tensor's name begins with what it is: a parameter that plays, one that training goes on from
// where those that play are a mean, one of a world model with what acts in it, or one of its slow
// critic.
inline constexpr const char* kPlayedPrefix = "policy.";
inline constexpr const char* kTrainedPrefix = "trained.";
inline constexpr const char* kModelPrefix = "model.";
inline constexpr const char* kSlowPrefix = "slow.";
// Or what an optimiser keeps of a parameter.
inline constexpr const char* kAdamMeanPrefix = "adam_m.";
inline constexpr const char* kAdamSquarePrefix = "adam_v.";
inline constexpr const char* kLaPropMeanPrefix = "laprop_mean.";
inline constexpr const char* kLaPropSquarePrefix = "laprop_square.";
inline constexpr std::array kOptimiserPrefixes = {kAdamMeanPrefix, kAdamSquarePrefix,
                                                  kLaPropMeanPrefix, kLaPropSquarePrefix};

// The tensor `name`; null where there is none.
const TrainerState::Tensor* FindTensor(const TrainerState& state, const std::string& name);

// Copies the tensor `name` into `values`. Throws Error(kConfig) naming it when it is missing, has
// another shape or size, or holds NaN or infinity; `values` is then as it was.
void ReadTensor(const TrainerState& state, const std::string& name,
                const std::vector<std::int64_t>& shape, std::span<float> values);

}  // namespace tetrion
