#pragma once

#include <cstddef>
#include <cstdint>

namespace tetrion {

// Where a gather on a device puts what it reads: the caller's device memory, time-major [R, b, ...]
// for R rows of b lanes. A column left null is not gathered. A plain value that kernels take.
struct DeviceColumns {
  std::byte* record = nullptr;     // [R, b, record_bytes] u8; 16-byte aligned copies fastest
  std::int32_t* action = nullptr;  // [R, b], as the columns below
  float* log_prob = nullptr;
  std::uint64_t* mask = nullptr;  // only of rows with masks
  float* reward = nullptr;
  std::uint8_t* flags = nullptr;  // RowFlags; is_last also where the next row is_first
  float* cont = nullptr;
  std::int32_t* episode_id = nullptr;
};

}  // namespace tetrion
