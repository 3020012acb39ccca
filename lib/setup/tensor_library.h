#pragma once

#include <span>
#include <string>

#include "lib/run/run_config.h"

namespace tetrion {

// The tensor library (libtorch) is half a gigabyte that most runs do not need: ./tetrion builds
// programs without it until a run does.

// Whether the programs of this build have the tensor library.
bool HasTensorLibrary();
// Whether a run of these settings, which are resolved, needs it: to train, to decide, or both.
bool NeedsTensorLibrary(const RunConfig& run);

// Returns when the run does not need the library, or `present` is true. Otherwise becomes the
// ./tetrion that has started this program and names itself in TETRION_SCRIPT: that installs the
// library, builds, and starts `program` of the new build with `arguments`, which are those of this
// program without its name. Call it before anything is made that a second start would find. Throws
// Error(kUsage) where no script has started this program, or none can be started.
void RequireTensorLibrary(const RunConfig& run, const std::string& program,
                          std::span<const char* const> arguments,
                          bool present = HasTensorLibrary());

}  // namespace tetrion
