#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/replay/selectors/selector.h"

namespace tetrion::testing {

// Draws the windows that the test names.
class ScriptedSelector final : public Selector {
 public:
  void OnCommit(int, std::uint64_t) override {}
  void OnReclaim(int, std::uint64_t) override {}
  void OnGeneration(int, std::uint64_t) override {}
  ItemCounts counts() const override { return {.size = 1}; }
  DrawResult Draw(int, std::span<const ShardRange>, std::vector<Window>& out) override {
    out = windows;
    return {.ready = true};
  }
  std::vector<Window> windows;
};

}  // namespace tetrion::testing
