#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/nn/network.h"
#include "lib/rl/trainer.h"

namespace tetrion {

// Appends `values`, a buffer in the layout's order, as one tensor a piece named prefix + piece.
void AppendTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                   std::span<const float> values, TrainerState& state);

// The reverse, into `values`. Throws Error(kConfig) naming the tensor that is missing, has another
// shape or holds NaN or infinity; `values` may then be partly written.
void ReadTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                 const TrainerState& state, std::span<float> values);

}  // namespace tetrion
