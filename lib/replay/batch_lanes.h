#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

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

// The runs of a gather, in order: every window of which lanes [first_lane, first_lane + lanes) of
// the lease's batch hold a part. The lease must stay open.
class LaneRuns {
 public:
  LaneRuns(const ReadLease& lease, int lanes_of_a_row, int first_lane, int lanes)
      : windows_(lease.windows()),
        lanes_of_a_row_(lanes_of_a_row),
        first_lane_(first_lane),
        end_lane_(first_lane + lanes) {}

  // The next run; false behind the last. CHECKs then that the batch has those lanes.
  bool Next(LaneRun& run) {
    while (next_ < windows_.size()) {
      const Window& window = windows_[next_++];
      const int begin = begin_, end = begin + (window.lane < 0 ? lanes_of_a_row_ : 1);
      begin_ = end;
      const int from = std::max(begin, first_lane_), to = std::min(end, end_lane_);
      if (from >= to) continue;
      run = {.window = window,
             .lane = std::max(window.lane, 0) + from - begin,
             .lanes = to - from,
             .cell = from - first_lane_};
      return true;
    }
    TETRION_CHECK(first_lane_ >= 0 && end_lane_ <= begin_, "the batch has fewer lanes");
    return false;
  }

 private:
  const std::span<const Window> windows_;
  const int lanes_of_a_row_, first_lane_, end_lane_;
  std::size_t next_ = 0;  // window
  int begin_ = 0;         // of its lanes in the batch
};

// The rows of a gather: those of each run, in order, around the end of the shard's memory.
class RunRows {
 public:
  RunRows(const ReadLease& lease, int lanes_of_a_row, int first_lane, int lanes,
          std::uint64_t capacity_rows)
      : runs_(lease, lanes_of_a_row, first_lane, lanes),
        rows_(static_cast<std::size_t>(lease.rows())),
        capacity_rows_(capacity_rows),
        t_(rows_) {}

  // To the next row, from before the first; false behind the last.
  bool Next() {
    if (++t_ < rows_) {
      if (++slot_ == capacity_rows_) slot_ = 0;
      return true;
    }
    t_ = rows_;
    if (!runs_.Next(run_)) return false;
    t_ = 0;
    slot_ = run_.window.start % capacity_rows_;
    return true;
  }

  const LaneRun& run() const { return run_; }
  bool IsLast() const { return t_ + 1 == rows_; }  // of its run
  std::size_t t() const { return t_; }             // row of the window
  std::uint64_t slot() const { return slot_; }     // where it lies: row mod Tcap

 private:
  LaneRuns runs_;
  const std::size_t rows_;
  const std::uint64_t capacity_rows_;
  LaneRun run_;
  std::size_t t_;
  std::uint64_t slot_ = 0;
};

// Calls visit(LaneRun) for every run.
template <typename Visit>
void ForEachLaneRun(const ReadLease& lease, int lanes_of_a_row, int first_lane, int lanes,
                    const Visit& visit) {
  LaneRuns runs(lease, lanes_of_a_row, first_lane, lanes);
  LaneRun run;
  while (runs.Next(run)) visit(run);
}

}  // namespace tetrion
