#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"

namespace tetrion {

// Looks a row over that came from another process: its number, actions, flags, rewards, cont, and
// by `check`, where there is one, its records. Returns nullptr or what is wrong, as a constant
// string. Costs about a nanosecond a lane.
const char* CheckRow(const RowLayout& layout, const std::byte* row, std::uint64_t expected_row,
                     std::int32_t action_count, CheckRecordsFn check = nullptr);

// What a policy decides a row by, copied out of the row. [M] each; `masks` null without masks.
struct SeenColumns {
  const std::byte* records = nullptr;
  const std::uint8_t* flags = nullptr;
  const std::uint64_t* masks = nullptr;
};

// Looks over what `lanes` lanes from another process show a policy: records, and that each lane
// which plays on has a legal action and names no other. As CheckRow otherwise.
const char* CheckSeen(const SeenColumns& seen, std::size_t lanes, std::int32_t action_count,
                      CheckRecordsFn check);

// Looks two consecutive rows of one worker over: is_first exactly where episode_id changes, is_last
// before is_first. Returns nullptr or what is wrong. For tests and debugging.
const char* CheckRowPair(const RowLayout& layout, const std::byte* row, const std::byte* next_row);

}  // namespace tetrion
