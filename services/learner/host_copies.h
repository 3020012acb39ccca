#pragma once

#include "lib/metrics/registry.h"

namespace tetrion::learner {

// Serves tetrion_cuda_host_copies_total from now on: what lib/cuda/device.h has copied between the
// host and devices, by direction and purpose. Once per registry, by its owner.
void ServeHostCopies(MetricsRegistry& registry);

}  // namespace tetrion::learner
