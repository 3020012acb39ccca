#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "lib/core/error.h"
#include "lib/nn/torch/host_memory.h"

namespace tetrion {

// An update that lacks memory before one `has_worked` would lack it after every restart; later
// another process has the memory now.
inline ExitCode CodeOfLack(bool has_worked) {
  return has_worked ? ExitCode::kTryAgain : ExitCode::kConfig;
}

// What another run may have less of than the one that lacks memory, which has weights to begin it
// with if an update `has_worked`. Weights of another size cannot be taken over.
inline std::string AnotherRun(bool has_worked, const std::string& smaller) {
  return has_worked ? "begin another run with its weights and a lower " + smaller +
                          ": ./tetrion up --init-from RUN"
                    : "begin a new run with a lower " + smaller + " or --size";
}

// Does an update on the CPU. A lack of memory is our Error, CodeOfLack, with the options to change.
template <typename Work>
void WithHostErrors(bool has_worked, const Work& work) {
  try {
    InHostMemory(work);
  } catch (const std::bad_alloc&) {
    throw Error(CodeOfLack(has_worked),
                "an update finds no memory: raise ulimit -v or the container's limit, lower "
                "--horizon with ./tetrion up --resume RUN, or " +
                    AnotherRun(has_worked, "--batch-windows or --window"));
  }
}

// Does `work` on a device. What the tensor library throws of it is our Error: CodeOfLack, with the
// options to change, where memory is missing; kTryAgain where the device fails.
template <typename Work>
void WithDeviceErrors(bool has_worked, const Work& work) {
  try {
    work();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(CodeOfLack(has_worked),
                std::string("an update does not fit beside the replay in the device's memory: ") +
                    error.what_without_backtrace() + "; give --trainer-device cpu, or " +
                    AnotherRun(has_worked, "--replay-rows or --batch-windows"));
  } catch (const c10::Error& error) {
    throw Error(ExitCode::kTryAgain,
                std::string("an update on the device failed: ") + error.what_without_backtrace());
  }
}

}  // namespace tetrion
