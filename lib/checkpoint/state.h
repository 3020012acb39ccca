#pragma once

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

// Copies the tensor `name` into `values`. Throws Error(kConfig) naming it when it is missing, has
// another shape or size, or holds NaN or infinity; `values` is then as it was.
void ReadTensor(const TrainerState& state, const std::string& name,
                const std::vector<std::int64_t>& shape, std::span<float> values);

}  // namespace tetrion
