#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/core/philox.h"
#include "lib/replay/selectors/selector.h"

namespace tetrion::testing {

// Draws any windows of `rows` rows that the ranges allow, by chance and as often as it is asked:
// leases alone protect what is read. Tells a test what the gate says.
class AnyWindowSelector final : public Selector {
 public:
  explicit AnyWindowSelector(int rows, std::uint64_t seed = 1)
      : rows_(static_cast<std::uint64_t>(rows)), seed_(seed) {}

  void OnCommit(int shard, std::uint64_t committed) override {
    if (on_commit) on_commit(shard, committed);
  }
  void OnReclaim(int, std::uint64_t) override {}
  void OnGeneration(int, std::uint64_t) override {}
  ItemCounts counts() const override { return {.size = 1}; }
  DrawResult Draw(int count, std::span<const ShardRange> ranges,
                  std::vector<Window>& out) override {
    std::vector<Window> drawn;
    for (int i = 0; i < count; ++i) {
      const PhiloxBlock draw = PhiloxDraw(seed_, ++draws_, 0, PhiloxPurpose::kSampler);
      const auto shard = BoundedDraw(draw.word[0], static_cast<std::uint32_t>(ranges.size()));
      const ShardRange& range = ranges[shard];
      if (range.hi < range.lo + rows_) return {.ready = false, .have = i, .need = count};
      const auto starts = static_cast<std::uint32_t>(range.hi - range.lo - rows_ + 1);
      // The oldest windows half of the time: those whose rows the writer wants back.
      const std::uint64_t start =
          range.lo + (draw.word[2] % 2 == 0 ? 0 : BoundedDraw(draw.word[1], starts));
      drawn.push_back({.shard = static_cast<int>(shard), .start = start});
    }
    out.insert(out.end(), drawn.begin(), drawn.end());
    return {.ready = true, .have = count, .need = count};
  }

  // Called under the gate's mutex: rows below `committed` are visible from now on.
  std::function<void(int shard, std::uint64_t committed)> on_commit;

 private:
  const std::uint64_t rows_;
  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

}  // namespace tetrion::testing
