#pragma once

#include <functional>

namespace tetrion {

// The outermost frame of every program: runs `fn` and turns what it throws into one line on stderr,
// "tetrion-actor: error: ...", and an exit code: an Error's own, 1 for any other exception. So it
// does, with 74, when `fn` returns 0 and what it printed to stdout could not be written.
// A file that is cut off while it is mapped ends the program as TellBusErrors says, with 75; a
// region that a TruncationGuard watches (tools/stream/stream_end.h) does so with 78.
// `argv[0]` names the program. Blocks as long as `fn`.
int GuardedMain(int argc, const char* const* argv,
                const std::function<int(int, const char* const*)>& fn) noexcept;

// Git revision the binary was built from ("1a2b3c4d5e6f", "-dirty" appended when tracked files
// differed, "unknown" outside a repository), the preset, and the project's version.
const char* Revision();
const char* Preset();
const char* Version();

}  // namespace tetrion
