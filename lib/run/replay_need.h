#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "lib/run/run_config.h"

namespace tetrion {

// Windows of one lane each that a replay must hold before uniform selection begins: as many as a
// batch has rows, so that the first batches are no copies of a few.
constexpr std::int64_t UniformFirstItems(int window, int batch_windows) {
  return std::int64_t{batch_windows} * window;
}
// As FifoReplayRows, for uniform selection: a single shard of `lanes` lanes has to hold these
// windows beside the chunk that is being written.
constexpr std::int64_t UniformReplayRows(int window, int batch_windows, int lanes,
                                         int commit_stride) {
  const std::int64_t stride = commit_stride;
  const std::int64_t starts = (UniformFirstItems(window, batch_windows) + lanes - 1) / lanes;
  const std::int64_t needed = std::max(starts + window + stride, 2 * stride);
  return (needed + stride - 1) / stride * stride;
}

// Rows of a replay shard that an algorithm needs and takes by itself, both multiples of
// commit_stride, and what the first number is made of.
struct ReplayNeed {
  std::int64_t least = 0, usual = 0;
  std::string made_of;
};
// By the settings of the run's algorithm, one overload each. `c` has its window and batch_windows.
ReplayNeed ReplayNeedOf(const VtraceSettings& settings, const RunConfig& c);
ReplayNeed ReplayNeedOf(const DreamerSettings& settings, const RunConfig& c);

}  // namespace tetrion
