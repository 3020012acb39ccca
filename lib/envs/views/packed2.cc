#include "lib/envs/views/packed2.h"

#include <cstring>

namespace tetrion {

void ExpandPacked2(const std::byte* records, std::int64_t record_bytes, std::int64_t n,
                   std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * record_bytes, sizeof(record));
    DrawPacked2(Sanitized(record), out + i * Packed2Layout::kBytes);
  }
}

void ExpandPacked2Shades(const std::byte* records, std::int64_t n, int /*queue_size*/, float* out) {
  for (std::int64_t i = 0; i < n * Packed2Layout::kBytes; ++i) {
    for (int pixel = 0; pixel < 4; ++pixel) {
      *out++ = Packed2Shade(std::to_integer<unsigned>(records[i]) >> (2 * pixel));
    }
  }
}

void ExpandPixels(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  std::uint8_t picture[Packed2Layout::kBytes];
  for (std::int64_t i = 0; i < n; ++i) {
    ExpandPacked2(records + i * static_cast<std::int64_t>(sizeof(TetrisRecord)),
                  sizeof(TetrisRecord), 1, picture);
    ExpandPacked2Shades(reinterpret_cast<const std::byte*>(picture), 1, queue_size,
                        out + i * Packed2Layout::kPixels);
  }
}

}  // namespace tetrion
