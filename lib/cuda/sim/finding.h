#pragma once

#include <cstdint>
#include <string>

#include "lib/cuda/code_location.h"

namespace tetrion::cuda::sim {

// What the simulator finds wrong in a kernel or a call.
enum class Diagnosis : std::uint8_t {
  kDifferentBarriers,        // threads of a block wait at different __syncthreads
  kReturnedBeforeBarrier,    // a thread returned while the others wait at a barrier
  kMaskNamesEndedLane,       // a warp operation names a lane that returned or never was
  kOutsideMask,              // a lane calls, or reads from, a lane that the mask leaves out
  kDifferentWarpOperations,  // the lanes of a mask are at different warp operations
  kSharedNeverWritten,       // shared memory is read before it is written
  kIndexPastEnd,             // an index past the end, or a raw write around a buffer
  kMemoryGone,               // a copy of a graph outlived its memory
  kGivenBackInCapture,       // memory was freed or unpinned by a thread that captures
  kDeadlock,                 // every thread waits, and nothing of the above explains it
  kException,                // a kernel threw
};

const char* Name(Diagnosis what);

struct Finding {
  Diagnosis what = Diagnosis::kException;
  CodeLocation where;  // in the kernel
  std::string text;    // a sentence with name, launch, block and thread
};

// Thrown through a kernel by what finds a fault, caught by the block's runner.
struct KernelFault {
  Diagnosis what;
  CodeLocation where;
  std::string text;
};

std::string ToText(const CodeLocation& where);

}  // namespace tetrion::cuda::sim
