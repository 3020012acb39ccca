#pragma once

namespace tetrion {

// Asks for the line at `address`, to be read, and goes on; an address that is not there is no
// error. Into the first-level cache: on a Zen 5 a gather is faster so than by way of the second
// alone (prefetcht1), to which more lines may be under way (docs/benchmarks.md).
// Not __builtin_prefetch: GCC leaves that out of a function that does nothing else, which then has
// no effect that it knows.
inline void PrefetchLine(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 0, 3);
#endif
}

}  // namespace tetrion
