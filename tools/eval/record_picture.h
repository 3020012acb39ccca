#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/envs/registry.h"

namespace tetrion {

// Draws the records of a run's environment as its entry says: pictures of one size, of as many
// pixels a unit as a GIF has, or lines of text. Pictures allocate at construction only; one thread.
class RecordPicture {
 public:
  // `env` plays the records; its entry must outlive this.
  explicit RecordPicture(const EnvSpec& env);

  const RgbSize& size() const { return size_; }
  // [height, width, 3] u8, valid until the next call. `record` holds the environment's record.
  std::span<const std::uint8_t> Draw(const std::byte* record);
  // The same for a terminal.
  std::string Text(const std::byte* record) const;

 private:
  const PictureEntry& picture_;
  const std::size_t record_bytes_;
  const int queue_size_;
  const RgbSize size_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace tetrion
