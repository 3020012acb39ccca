#pragma once

#include "lib/cuda/sim/memory.h"

namespace tetrion::cuda::sim {

// From now on a segmentation fault at an address of `memory`, or at the end of a simulated thread's
// stack, prints which buffer was meant and which kernel did it, before the process dies of it. Once
// per process; `memory` lives as long.
void ReportFaultsIn(const Memory& memory);

// Gives the calling thread's signal handlers a stack of their own, once: without it a fault for
// want of stack cannot be reported. It goes with the thread.
void ReserveFaultStack();

}  // namespace tetrion::cuda::sim
