#pragma once

#include <memory>

#include "lib/nn/network.h"

namespace tetrion {

// Networks whose arithmetic is the tensor library's; this header knows nothing of it.

// View `planes`, whose first 400 floats are two 20x10 planes (field, active piece):
//   planes [N, 2, 20, 10] -> conv3x3 32 -> SiLU -> (conv3x3 32 -> SiLU -> conv3x3 32) + input
//   -> SiLU -> flatten [N, 6400], joined by the rest of the view [N, F - 400] -> as wide mlp
// Throws Error(kUsage) for other views.
std::unique_ptr<Network> MakeConv(const NetworkConfig& config, const EnvSpec& env);

}  // namespace tetrion
