#pragma once

#include <cstdint>

namespace tetrion {

// The right and duty to play one episode. All randomness of the episode follows from (run seed,
// id); `attempt` only says how often the token has been handed out.
struct Token {
  std::uint64_t id = 0;
  std::uint32_t attempt = 0;
  std::uint32_t max_steps = 0;  // the episode is truncated after so many actions
};

// What the ledger learns of a finished episode.
struct EpisodeResult {
  std::uint64_t token_id = 0;
  std::uint32_t attempt = 0;
  std::uint32_t lane = 0;            // lane of the worker that played it
  std::uint32_t length_steps = 0;    // actions taken
  std::uint32_t lines = 0;           // Tetris lines cleared; 0 elsewhere
  float episode_return = 0.0F;       // sum of rewards
  std::uint32_t policy_version = 0;  // version that took the last action
};

}  // namespace tetrion
