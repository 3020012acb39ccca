#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/frame/row_layout.h"
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

// Calls visit(offset in a row, cells of a batch) for every column of one number a lane, as members
// of RowLayout and RowColumns; mask only of rows with masks.
template <typename Visit>
void ForEachNumber(const RowSpec& row, const Visit& visit) {
  visit(&RowLayout::action, &RowColumns::action);
  visit(&RowLayout::log_prob, &RowColumns::log_prob);
  if (row.has_mask) visit(&RowLayout::mask, &RowColumns::mask);
  visit(&RowLayout::reward, &RowColumns::reward);
  visit(&RowLayout::cont, &RowColumns::cont);
  visit(&RowLayout::flags, &RowColumns::flags);
}

}  // namespace tetrion
