#pragma once

#include <cstdint>
#include <string>

namespace tetrion {

// Raises this process's limit of open files as far as it may: past the limit a socket accepts no
// connection, says nothing, and spins. Throws Error(kUsage) naming `what` when less than `needed`
// is to be had.
void RaiseFileLimit(std::uint64_t needed, const std::string& what);

}  // namespace tetrion
