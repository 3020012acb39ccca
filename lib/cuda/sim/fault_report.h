#pragma once

#include "lib/cuda/sim/memory.h"

namespace tetrion::cuda::sim {

// From now on a segmentation fault at an address of `memory` prints which buffer was meant and
// which kernel did it, before the process dies of it. Once per process; `memory` lives as long.
void ReportFaultsIn(const Memory& memory);

}  // namespace tetrion::cuda::sim
