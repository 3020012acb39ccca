#pragma once

#include <cstdint>

namespace tetrion {

// What a thread copies at once where addresses and sizes are multiples of 16 bytes.
struct alignas(16) RecordWord16 {
  std::uint64_t half[2];
};

}  // namespace tetrion
