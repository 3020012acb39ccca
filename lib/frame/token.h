#pragma once

#include <algorithm>
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

// Credits below which a worker's queue is refilled, to twice as many: enough for the shortest
// episodes between two cycles of the actor's link.
constexpr std::uint64_t CreditLowWater(std::uint64_t lanes) {
  constexpr std::uint64_t kLeast = 512;
  return std::max(kLeast, 2 * lanes);
}
// Report batches that wait for their acknowledgement before an actor asks for no more tokens, and
// the episodes of one.
inline constexpr std::uint64_t kMaxUnackedBatches = 64;
inline constexpr std::uint64_t kMaxBatchEpisodes = 1024;
// Most tokens that an actor can need at once: a pool and the workers' queues of twice the low water
// each, one token a lane, and episodes whose reports wait. The coordinator grants no more.
constexpr std::uint64_t MaxTokensHeld(std::uint64_t workers, std::uint64_t lanes) {
  return workers * (4 * CreditLowWater(lanes) + lanes) + 2 * kMaxUnackedBatches * kMaxBatchEpisodes;
}

}  // namespace tetrion
