#pragma once

#include <algorithm>

#include "lib/core/check.h"
#include "lib/replay/lease.h"

namespace tetrion {

// Lanes [first_lane, first_lane + lanes) and rows [first_row, first_row + rows) of a batch.
struct BatchPart {
  int first_lane = 0, lanes = 0, first_row = 0, rows = 0;
};

// Lanes [lane, lane + lanes) of a window, which are cells [cell, cell + lanes) of a gather's rows.
struct LaneRun {
  Window window;
  int lane = 0, lanes = 0, cell = 0;
};

// Calls visit(LaneRun) for every window of which lanes [first_lane, first_lane + lanes) of the
// lease's batch hold a part, in order. CHECKs that the batch has those lanes.
template <typename Visit>
void ForEachLaneRun(const ReadLease& lease, int lanes_of_a_row, int first_lane, int lanes,
                    const Visit& visit) {
  const int end_lane = first_lane + lanes;
  int begin = 0;  // of the window's lanes in the batch
  for (const Window& window : lease.windows()) {
    const int end = begin + (window.lane < 0 ? lanes_of_a_row : 1);
    const int from = std::max(begin, first_lane), to = std::min(end, end_lane);
    if (from < to) {
      visit(LaneRun{.window = window,
                    .lane = std::max(window.lane, 0) + from - begin,
                    .lanes = to - from,
                    .cell = from - first_lane});
    }
    begin = end;
  }
  TETRION_CHECK(first_lane >= 0 && end_lane <= begin, "the batch has fewer lanes");
}

}  // namespace tetrion
