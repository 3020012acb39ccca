#pragma once

namespace tetrion {

// Asks for the line at `address`, to be read, and goes on; an address that is not there is no
// error. Into the second-level cache: many more lines may be under way to it than to the first.
// Not __builtin_prefetch: GCC leaves that out of a function that does nothing else, which then has
// no effect that it knows.
inline void PrefetchLine(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetcht1 %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 0, 2);
#endif
}

}  // namespace tetrion
