#pragma once

#include <cstdint>

#include "lib/cuda/kernel_spans.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/frame/token.h"

namespace tetrion {

// What the kernels of device lanes know of them beside their games: device memory, in columns.

// Changes between two steps, where every block reads it; a step's own sums wait for Advance.
struct LaneTotals {
  std::uint64_t row;            // number of the next row, or of the one being made
  std::uint64_t added;          // tokens, since the start
  std::uint64_t begun;          // of them, those given back before they began included
  std::uint64_t drained;        // episodes that a drain has copied
  std::uint64_t given_back;     // tokens that bring no episode
  std::uint64_t env_steps;      // actions executed
  std::uint64_t begins_of_row;  // for Advance to add to `begun`
  std::uint64_t steps_of_row;   // for Advance to add to `env_steps`
  unsigned long long ended;     // episodes; the type is that of CUDA's atomics
  unsigned long long bad_actions;
};

enum class LanePhase : std::uint8_t {
  kIdle,     // no episode; the row shows none
  kPlaying,  // the next row takes an action
  kEnded,    // the last row made was the episode's last
};

// How many rows' counts of lanes that need a token are kept: the present row's, which every block
// reads, the next row's, which blocks add to, and the one after it, which blocks clear.
inline constexpr std::uint64_t kNeedRows = 3;

struct LaneSpans {
  cuda::DeviceSpan<LaneTotals> totals;    // [1]
  cuda::DeviceSpan<const Token> tokens;   // [token_capacity] number k in slot k % token_capacity
  cuda::DeviceSpan<std::uint32_t> needs;  // [kNeedRows, blocks] row r in r % kNeedRows
  cuda::DeviceSpan<EndedEpisode> ended;   // [episode_capacity] within a row in no order
  cuda::DeviceSpan<Token> cut;            // [M] of a cut lane, or max_steps 0
  cuda::DeviceSpan<LanePhase> phase;      // [M], as the columns below
  cuda::DeviceSpan<std::uint64_t> token_ids;
  cuda::DeviceSpan<std::uint32_t> attempts;
  cuda::DeviceSpan<std::uint32_t> max_steps;
  cuda::DeviceSpan<std::uint32_t> steps;
  cuda::DeviceSpan<std::uint32_t> lines;
  cuda::DeviceSpan<double> returns;
  cuda::DeviceSpan<std::int32_t> episode_ids;  // -1 before the first
};

enum class StepKind : std::uint8_t {
  kPlay,
  kCut,  // no lane begins, and what plays is truncated
};

}  // namespace tetrion
