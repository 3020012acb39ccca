#pragma once

#include <cstddef>

namespace tetrion {

// Fetches a line that the peer read a lap ago for writing, so that the next record's first store
// does not wait for it. __builtin_prefetch would only read it: x86-64-v3 does not promise the
// instruction, which older processors take as a no-op.
inline void PrefetchForWrite(std::byte* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace tetrion
