#pragma once

#include <string_view>

namespace tetrion {

// From now on a program that touches bytes of a mapped file that are not there any more, because
// the file was cut off meanwhile or its device is full or fails, ends with one line on stderr,
// which names the file, and ExitCode::kTryAgain: as after kill -9, but with a word. Otherwise it
// would die of a SIGBUS that says neither what nor where. Every other SIGBUS ends the program as
// ever.
//
// For GuardedMain, before other threads start. `program` begins the line and outlives the process.
void TellBusErrors(std::string_view program);

}  // namespace tetrion
