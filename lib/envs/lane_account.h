#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/frame/row_layout.h"

// The account of an episode, once for the lanes of the CPU (lane_env.h) and of a device (cuda/).

namespace tetrion {

// What one action did to a lane, as the row wants it.
struct LaneOutcome {
  float reward = 0.0F;
  std::uint32_t lines = 0;
  bool terminated = false;
};

// Of an episode so far.
struct EpisodeAccount {
  std::uint32_t steps = 0;  // actions taken
  std::uint32_t lines = 0;
  double episode_return = 0.0;  // a float's sum stops growing by ones at 2^24
};

// The flags of the row that an action led to, after which an episode has `steps` actions.
TETRION_HOST_DEVICE inline std::uint8_t FlagsAfter(bool terminated, std::uint32_t steps,
                                                   std::uint32_t max_steps) {
  const int truncated = steps >= max_steps ? kIsLast | kTruncated : 0;
  return static_cast<std::uint8_t>(terminated ? kIsLast | kTerminated : truncated);
}

// Counts an action; returns the flags of the row that it led to.
TETRION_HOST_DEVICE inline std::uint8_t CountStep(EpisodeAccount& account,
                                                  const LaneOutcome& outcome,
                                                  std::uint32_t max_steps) {
  account.steps += 1;
  account.lines += outcome.lines;
  account.episode_return += outcome.reward;
  return FlagsAfter(outcome.terminated, account.steps, max_steps);
}

}  // namespace tetrion
