#pragma once

#include <memory>

#include "lib/cuda/device.h"
#include "lib/rl/dreamer/update_place.h"

namespace tetrion {

// Updates on a CUDA device: the first ones as they come, so that the libraries of the tensor
// library make their plans; then one is recorded as a graph, forward pass, backward pass and
// optimiser, and from then on launched as a whole.
std::unique_ptr<UpdatePlace> MakeGraphPlace(const cuda::Device& device);

}  // namespace tetrion
