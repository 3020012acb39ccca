#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/frame/row_layout.h"

namespace tetrion {

// The rows of one replay shard with memory of its own for each column, time-major [Tcap, M, ...]:
// how rows lie in a device's memory. A plain value that kernels take as an argument; owns nothing.
// What the columns mean: lib/frame/row_layout.h.
struct RowSlots {
  RowHeader* header = nullptr;     // [Tcap]
  std::byte* record = nullptr;     // [Tcap, M, record_bytes] u8
  std::int32_t* action = nullptr;  // [Tcap, M], as the columns below
  float* log_prob = nullptr;
  std::uint64_t* mask = nullptr;  // null without masks
  float* reward = nullptr;
  std::uint8_t* flags = nullptr;
  float* cont = nullptr;
  std::int32_t* episode_id = nullptr;
  std::uint64_t capacity_rows = 0;  // Tcap
  std::uint32_t lanes = 0;          // M
  std::uint32_t record_bytes = 0;

  // The slot of logical row `row`: all its lanes.
  TETRION_HOST_DEVICE RowView At(std::uint64_t row) const {
    const std::uint64_t slot = row % capacity_rows;
    const std::uint64_t cell = slot * lanes;
    RowView view;
    view.header = header + slot;
    view.record = record + cell * record_bytes;
    view.action = action + cell;
    view.log_prob = log_prob + cell;
    view.mask = mask == nullptr ? nullptr : mask + cell;
    view.reward = reward + cell;
    view.flags = flags + cell;
    view.cont = cont + cell;
    view.episode_id = episode_id + cell;
    return view;
  }
};

}  // namespace tetrion
