#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/envs/views/packed2_pixels.h"

namespace tetrion {

// Draws one record into 1440 bytes. Its pieces must come from the rules or from SanitizePieces;
// its rows may be any.
void DrawPacked2(const TetrisRecord& record, std::uint8_t* out);

// Draws `n` records lying `record_bytes` apart, each beginning with a compact record: compact or
// colour. Any bytes. `out` is [n, 1440] u8.
void ExpandPacked2(const std::byte* records, std::int64_t record_bytes, std::int64_t n,
                   std::uint8_t* out);

// As ObsSpec::expand wants it, of pictures: `records` is [n, 1440] u8, `out` is [n, 72, 80] f32,
// shade / 3. `queue_size` is ignored.
void ExpandPacked2Shades(const std::byte* records, std::int64_t n, int queue_size, float* out);

// The same pictures from compact records: `records` is [n, 64] u8, `out` is [n, 72, 80] f32.
void ExpandPixels(const std::byte* records, std::int64_t n, int queue_size, float* out);

}  // namespace tetrion
