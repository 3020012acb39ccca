#pragma once

#include "lib/cuda/device.h"
#include "lib/run/run_config.h"
#include "lib/weights/weights_reader.h"
#include "services/learner/replay_memory.h"
#include "services/learner/resident_agent.h"

namespace tetrion::learner {

// The lanes of the shape, in the memory of `device`, and what decides them: the run's environment
// and network, with the weights that the learner publishes. Throws Error: kUsage for an environment
// or a network that has no kernels, with those that have; kTryAgain when memory is short.
ResidentAgent::Parts MakeResidentParts(const RunConfig& run, const ReplayShape& shape,
                                       const cuda::Device& device,
                                       const WeightsReader::Config& weights);

}  // namespace tetrion::learner
