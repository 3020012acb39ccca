#include "lib/core/error.h"
#include "tools/stream/stream_policy.h"

namespace tetrion {

// Of builds with TETRION_TORCH=OFF.
std::unique_ptr<Policy> LoadCheckpointPolicy(const std::string&, const std::string& run) {
  throw Error(ExitCode::kUsage, "--policy checkpoint:" + run +
                                    ": this program was built without libtorch; build with "
                                    "TETRION_TORCH=ON, or use --policy linear or random");
}

}  // namespace tetrion
