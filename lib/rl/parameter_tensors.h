#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"
#include "lib/nn/network.h"

namespace tetrion {

// Appends `values`, a buffer in the layout's order, as one tensor a piece named prefix + piece.
void AppendTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                   std::span<const float> values, TrainerState& state);

// The reverse, into `values`. Throws as ReadTensor does; `values` may then be partly written.
void ReadTensors(const std::vector<ParameterInfo>& layout, const std::string& prefix,
                 const TrainerState& state, std::span<float> values);

// A trainer's counter of its updates.
inline constexpr char kUpdatesCounter[] = "updates";
// Throws Error(kConfig) when it is missing or negative.
std::int64_t ReadUpdates(const TrainerState& state);

}  // namespace tetrion
