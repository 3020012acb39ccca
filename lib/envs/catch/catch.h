#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/envs/catch/catch_rules.h"
#include "lib/envs/registry.h"

namespace tetrion {

EnvEntry CatchEntry();

// As ObsSpec::expand wants it: `records` is [n, 8] u8, `out` is [n, 90] f32, a cell each, row-major
// from the top: 1 where ball or paddle is, else -1. A ball or paddle outside the board is in none.
void ExpandCatch(const std::byte* records, std::int64_t n, int queue_size, float* out);

// Our own drawing, 10 `scale` x 9 `scale` pixels: the ball red, the paddle white, the rest black.
void RenderCatchRgb(const CatchRecord& record, int scale, std::uint8_t* out);

// A line a row for a terminal: o the ball, = the paddle, @ the ball on the paddle, . the rest.
std::string RenderCatchText(const CatchRecord& record);

}  // namespace tetrion
