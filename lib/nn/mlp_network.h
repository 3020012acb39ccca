#pragma once

#include <memory>

#include "lib/nn/network.h"

namespace tetrion {

// Network `mlp` on the CPU, in arithmetic of our own; its two shapes: lib/nn/mlp.h. Reads every
// view. Forward keeps what Backward needs of every state: the trunks' activations of the small
// shape, 1 KB, or what the wide one's layers give before LayerNorm, 2 KB.
std::unique_ptr<Network> MakeMlp(const NetworkConfig& config, const EnvSpec& env);

}  // namespace tetrion
