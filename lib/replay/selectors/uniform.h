#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/replay/selectors/selector.h"

namespace tetrion {

// Draws windows of `window_rows` rows independently and with equal chance from all that the shards
// hold, as often as it is asked: every start whose rows are all there, and with `lanes` every lane
// of it. An item is one such (shard, start[, lane]). Windows may cross episodes and generations;
// what begins anew says is_first.
//
// Draw n of a seed is a pure function of seed, n and the ranges: Philox, so that a device can draw
// the same.
class UniformSelector final : public Selector {
 public:
  struct Config {
    int shards = 1;
    int window_rows = 0;
    int lanes = 0;  // M: a window is one lane; 0: a window is all lanes
    std::uint64_t seed = 1;
  };
  explicit UniformSelector(const Config& config);

  void OnCommit(int shard, std::uint64_t committed) override;
  void OnReclaim(int shard, std::uint64_t valid_lo) override;
  void OnGeneration(int, std::uint64_t) override {}
  ItemCounts counts() const override { return counts_; }
  // CHECKs that all shards together hold fewer than 2^32 starts.
  DrawResult Draw(int count, std::span<const ShardRange> ranges, std::vector<Window>& out) override;

 private:
  // First rows of the windows that a range holds.
  std::uint64_t Starts(const ShardRange& range) const;
  Window WindowAt(std::uint64_t start, std::span<const ShardRange> ranges) const;
  void Resize(int shard, const ShardRange& range);

  const Config config_;
  std::vector<ShardRange> held_;  // [S] as the gate last said
  ItemCounts counts_;
  std::uint64_t draws_ = 0;
};

}  // namespace tetrion
