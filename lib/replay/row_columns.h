#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/frame/specs.h"

namespace tetrion {

// Where a gather puts what it reads: the caller's memory, time-major [R, b, ...] for R rows of b
// lanes. A column left null is not gathered.
struct RowColumns {
  std::byte* record = nullptr;     // [R, b, record_bytes] u8
  const ObsSpec* obs = nullptr;    // how records become views; only with `view`
  float* view = nullptr;           // [R, b, F] f32
  std::int32_t* action = nullptr;  // [R, b]
  float* log_prob = nullptr;       // [R, b]
  std::uint64_t* mask = nullptr;   // [R, b]; only of rows with masks
  float* reward = nullptr;         // [R, b]
  std::uint8_t* flags = nullptr;   // [R, b] RowFlags
  float* cont = nullptr;           // [R, b]
};

}  // namespace tetrion
