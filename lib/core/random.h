#pragma once

#include <cstdint>

namespace tetrion {

// 64 bits from the kernel's generator (getrandom), for numbers that must differ between processes
// and that others must not guess: run ids, process numbers, session numbers. Everything random in a
// run's episodes is Philox with the run's seed instead. Any thread; blocks only before the kernel's
// pool is ready at boot.
std::uint64_t RandomBits();

}  // namespace tetrion
