#pragma once

#include <memory>

#include "lib/cuda/device.h"
#include "lib/rl/dreamer/update_place.h"

namespace tetrion {

// Where updates are computed on `device`: recorded and repeated as one graph
// (lib/rl/torch/graph_place.h), or on a simulated device as they come. Throws Error(kConfig) where
// the build's tensor library has no part for CUDA.
std::unique_ptr<UpdatePlace> MakeUpdatePlace(const cuda::Device& device);

// Whether this build computes updates on CUDA's devices.
bool UpdatesOnCuda();

}  // namespace tetrion
