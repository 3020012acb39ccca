#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/envs/gym_views.h"
#include "lib/frame/specs.h"

namespace tetrion {

// The view whose records show an environment's colours; "" where the default's do.
std::string ViewWithColours(const std::string& env);

// Draws an environment's records as pictures of one size: Tetris as tetris-gymnasium does, 10
// pixels a cell, CartPole 200 x 300. Allocates at construction only; one thread.
class RecordPicture {
 public:
  // Records of kind `cartpole`, `colour` or `compact` (locked cells are grey); CHECKs that.
  explicit RecordPicture(const ObsSpec& obs);

  const RgbSize& size() const { return size_; }
  // [height, width, 3] u8, valid until the next call. `record` holds obs.record_bytes.
  std::span<const std::uint8_t> Draw(const std::byte* record);

 private:
  const std::string kind_;
  const int queue_size_;
  const RgbSize size_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace tetrion
