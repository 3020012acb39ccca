#include "lib/cuda/sim/finding.h"

namespace tetrion::cuda::sim {

const char* Name(Diagnosis what) {
  switch (what) {
    case Diagnosis::kDifferentBarriers:
      return "different barriers";
    case Diagnosis::kReturnedBeforeBarrier:
      return "returned before a barrier";
    case Diagnosis::kMaskNamesEndedLane:
      return "mask names an ended lane";
    case Diagnosis::kOutsideMask:
      return "lane outside of the mask";
    case Diagnosis::kDifferentWarpOperations:
      return "different warp operations";
    case Diagnosis::kSharedNeverWritten:
      return "shared memory never written";
    case Diagnosis::kIndexPastEnd:
      return "index past the end";
    case Diagnosis::kMemoryGone:
      return "memory is gone";
    case Diagnosis::kGivenBackInCapture:
      return "memory given back in a capture";
    case Diagnosis::kDeadlock:
      return "deadlock";
    case Diagnosis::kException:
      return "exception in a kernel";
  }
  return "?";
}

std::string ToText(const CodeLocation& where) {
  return std::string(where.file) + ":" + std::to_string(where.line);
}

}  // namespace tetrion::cuda::sim
