#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/frame/row_layout.h"

namespace tetrion {

// Looks a row over that came from another process: its number, actions, flags, rewards, cont.
// Returns nullptr or what is wrong, as a constant string. Costs about a nanosecond a lane.
const char* CheckRow(const RowLayout& layout, const std::byte* row, std::uint64_t expected_row,
                     std::int32_t action_count);

// Looks two consecutive rows of one worker over: is_first exactly where episode_id changes, is_last
// before is_first. Returns nullptr or what is wrong. For tests and debugging.
const char* CheckRowPair(const RowLayout& layout, const std::byte* row, const std::byte* next_row);

}  // namespace tetrion
