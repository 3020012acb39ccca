#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/core/clock.h"

namespace tetrion::learner {

// When the resident lanes fetch what has ended: a fetch copies as many bytes however little there
// is. It is due each `every_ns`, and earlier when, as the fetches so far tell, half of the tokens
// that wait on the device have probably begun, or half of the episodes that a fetch holds have
// probably ended. Until the rate is known a fetch is due after every chunk.
//
// Thread role: the resident thread.
class DrainPace {
 public:
  // `lanes`: most episodes of a fetch, and most that end in a row.
  DrainPace(std::uint64_t lanes, std::int64_t every_ns)
      : lanes_(lanes), every_ns_(every_ns), ended_per_row_(static_cast<double>(lanes)) {}

  // `rows`: made so far.
  bool Due(std::uint64_t rows, std::int64_t now_ns) const {
    if (more_ || now_ns - enqueued_ns_ >= every_ns_) return true;
    const double ended = ended_per_row_ * static_cast<double>(rows - enqueued_rows_);
    return 2 * ended >= static_cast<double>(std::min(waiting_, lanes_));
  }
  void OnEnqueued(std::uint64_t rows, std::int64_t now_ns) {
    span_rows_ = rows - enqueued_rows_;
    enqueued_rows_ = rows;
    enqueued_ns_ = now_ns;
  }
  // The fetch enqueued last has come. `more`: episodes that ended are left for the next.
  void OnDrained(std::uint64_t episodes, std::uint64_t tokens_waiting, bool more) {
    waiting_ = tokens_waiting;
    more_ = more;
    if (span_rows_ == 0) return;
    const double seen = static_cast<double>(episodes) / static_cast<double>(span_rows_);
    // Down by half at most: lanes that began together end together.
    ended_per_row_ = std::max(seen, ended_per_row_ / 2);
  }
  void OnAdded(std::uint64_t tokens) { waiting_ += tokens; }

 private:
  const std::uint64_t lanes_;
  const std::int64_t every_ns_;
  double ended_per_row_;  // at most, as far as known
  std::uint64_t waiting_ = 0;
  bool more_ = false;
  std::uint64_t enqueued_rows_ = 0, span_rows_ = 0;  // at the last fetch; between the last two
  std::int64_t enqueued_ns_ = 0;
};

}  // namespace tetrion::learner
