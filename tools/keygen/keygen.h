#pragma once

#include <iosfwd>

namespace tetrion {

// What main does: makes keys as its arguments say and names the files on `out`. Returns the exit
// code; throws Error(kUsage).
int RunKeygen(int argc, const char* const* argv, std::ostream& out);

}  // namespace tetrion
