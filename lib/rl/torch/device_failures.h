#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "lib/core/error.h"

namespace tetrion {

// Does `work`. What the tensor library throws of a device is our Error: kConfig, with the options
// to change, where an update lacks memory before one `has_worked`, as it would after every restart;
// kTryAgain where another process has the memory now, or the device fails.
template <typename Work>
void WithOurErrors(bool has_worked, const Work& work) {
  try {
    work();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(has_worked ? ExitCode::kTryAgain : ExitCode::kConfig,
                std::string("an update does not fit beside the replay in the device's memory: ") +
                    error.what_without_backtrace() +
                    "; lower --replay-rows, --size or --batch-windows, or give --trainer-device "
                    "cpu");
  } catch (const c10::Error& error) {
    throw Error(ExitCode::kTryAgain,
                std::string("an update on the device failed: ") + error.what_without_backtrace());
  }
}

}  // namespace tetrion
