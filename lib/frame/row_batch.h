#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/row_layout.h"

namespace tetrion {

// A training batch gathered from the replay: T+1 rows of B = windows x M lanes, time-major,
// column-wise, in ordinary memory. Allocated once, overwritten by every gather. Window w occupies
// lanes [w*M, (w+1)*M).
struct RowBatch {
  // T = `steps` transitions, `windows` shard windows side by side.
  RowBatch(const RowSpec& spec, int steps, int windows);

  // Copies row t (0..T) of window w out of a shard row. `is_first` of the following row is ORed
  // into is_last afterwards with MarkCutEpisodes, so that killed lanes and reused slots end
  // episodes.
  void CopyRow(const RowLayout& layout, const std::byte* row, int t, int window);
  // ORs is_last into rows whose successor is_first (t < T). A row cut that way is an abandonment,
  // not a termination: cont stays 1.
  void MarkCutEpisodes();

  RowSpec spec;
  int steps;    // T
  int windows;  // W
  int lanes;    // B = W * M

  std::vector<std::byte> record;              // [T+1, B, record_bytes] u8
  std::vector<std::int32_t> action;           // [T+1, B]
  std::vector<float> log_prob;                // [T+1, B]
  std::vector<std::uint64_t> mask;            // [T+1, B]; empty without masks
  std::vector<float> reward;                  // [T+1, B]
  std::vector<std::uint8_t> flags;            // [T+1, B] RowFlags
  std::vector<float> cont;                    // [T+1, B]
  std::vector<std::uint32_t> policy_version;  // [T+1, W]
};

}  // namespace tetrion
