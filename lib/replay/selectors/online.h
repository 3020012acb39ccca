#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "lib/replay/selectors/uniform.h"

namespace tetrion {

// Fresh windows first, uniform ones after them: DreamerV3's online queue (Hafner et al., 2023).
//
//   rows of a lane   0 . . . . L . . . . 2L . . . . 3L . . .
//   queued           [0, L)    [L, 2L)   [2L, 3L)            at most once, from its last row on
//
// A draw takes queued windows, oldest first, and fills up with windows of any start, drawn as
// UniformSelector does. Each row but the first of a queued window, which is only its context, is
// trained on once while it is fresh. With W windows drawn per inserted row, a share of 1 / (L * W)
// is queued ones, and each of them is drawn. Where rows arrive faster, at most `share` of the drawn
// windows comes from the queue, and what the next few draws will not take is dropped, oldest first:
// uniform draws still find it.
//
// Items are counted as UniformSelector counts them.
class OnlineSelector final : public Selector {
 public:
  struct Config {
    UniformSelector::Config uniform;   // window_rows is L
    double share = 0.25;               // of the windows drawn, at most; in (0, 1]
    std::size_t queued_starts = 4096;  // at most; a start stands for one window of every lane
  };
  explicit OnlineSelector(const Config& config);

  void OnCommit(int shard, std::uint64_t committed) override;
  void OnReclaim(int shard, std::uint64_t valid_lo) override;
  void OnGeneration(int shard, std::uint64_t base) override;
  ItemCounts counts() const override;
  DrawResult Draw(int count, std::span<const ShardRange> ranges, std::vector<Window>& out) override;

 private:
  struct Queued {
    Window next;  // its lane is the next to be drawn
    std::uint64_t number;
  };

  // The shard whose queue's front is the oldest start of all. CHECKs that there is one.
  std::size_t Oldest() const;
  void DropFront(std::size_t shard);
  // Drops what is queued beyond the next draws of `count` windows.
  void DropStale(int count);
  // Moves up to `most` windows from the queues to `out`; returns how many.
  int TakeQueued(int most, std::vector<Window>& out);

  const Config config_;
  UniformSelector uniform_;
  std::vector<std::uint64_t> next_start_;    // [S] start of the shard's next queued window
  std::vector<std::deque<Queued>> queues_;   // [S] starts, oldest first
  std::vector<std::uint64_t> front_number_;  // [S] the front's, kNoFront where a queue is empty
  std::size_t queued_ = 0;                   // starts of all shards
  std::uint64_t pushed_ = 0;
  double credit_ = 0;       // fraction of a queued window that may be drawn
  std::int64_t drawn_ = 0;  // of the queue
};

}  // namespace tetrion
