#pragma once

#include <cstdint>

namespace tetrion {

// A recurrent model's state behind each row: a part of bf16 and a part of small integers.
struct LatentSpec {
  std::uint32_t deter = 0;  // D
  std::uint32_t stoch = 0;  // S
};

// Latents of a part of a batch, time-major [R, b, ...], in the memory that the call says.
struct LatentColumns {
  std::uint16_t* deter = nullptr;  // [R, b, D] bf16
  std::uint8_t* stoch = nullptr;   // [R, b, S]
  std::uint8_t* valid = nullptr;   // [R, b] 1 where deter and stoch mean something; gathers only
};

}  // namespace tetrion
