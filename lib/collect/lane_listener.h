#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "lib/frame/token.h"

// What a lane loop tells the outside.

namespace tetrion {

// Told of what happened to tokens. Called on the worker's thread; must not block.
class LaneListener {
 public:
  virtual ~LaneListener() = default;
  // Episodes whose last row the other side can see.
  virtual void OnEpisodes(std::span<const EpisodeResult> episodes) = 0;
  // Tokens given back unfinished: "drain", "not_finite", "policy" or "reset".
  virtual void OnAbandoned(std::span<const Token> tokens, const char* reason) = 0;
  // One row was made; nanoseconds spent in environment and policy (or between publication and
  // answer), versions the policy was behind.
  virtual void OnRow(std::int64_t env_ns, std::int64_t inference_ns,
                     std::uint32_t lag_versions) = 0;
};

enum class WaitReason { kToken = 0, kRing = 1, kWeights = 2, kAnswer = 3 };
inline constexpr int kWaitReasons = 4;

// Written by the worker, read by anyone; relaxed, since no figure orders another.
struct alignas(128) LaneCounters {
  std::atomic<std::uint64_t> env_steps{0};   // actions executed
  std::atomic<std::uint64_t> rows{0};        // rows completed
  std::atomic<std::uint64_t> episodes{0};    // episodes announced
  std::atomic<std::uint64_t> not_finite{0};  // rows on which the policy failed
  std::atomic<std::int64_t> wait_ns[kWaitReasons]{};
  std::atomic<std::uint32_t> policy_version{0};
};

}  // namespace tetrion
