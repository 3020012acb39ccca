#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "lib/frame/row_layout.h"
#include "lib/frame/token.h"

// What a lane loop is connected to: where its episodes come from, where its rows go, and who hears
// of what happened. Weights come from lib/weights/weights_source.h, decisions from decider.h.
namespace tetrion {

enum class [[nodiscard]] TakeResult {
  kToken,    // a token was taken
  kTimeout,  // none came in time; ask again
  kIdle,     // none for now: the lane stays idle while other lanes play
  kDrain,    // no token will come any more: cut the live lanes, return their tokens, stop
  kFenced,   // the session ended: cut the live lanes, drop their tokens, call AcceptFence, go on
};

// Where a worker's lanes get their episodes from.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Waits at most `timeout_ns` for a token. Worker thread only.
  virtual TakeResult Take(Token& token, std::int64_t timeout_ns) = 0;
  // What the next Take would say without a token (kDrain, kFenced), else kToken; lets the worker
  // see a drain between rows. One atomic load.
  virtual TakeResult State() const = 0;
  // The worker has cut its lanes after kFenced; tokens of the new session may be taken.
  virtual void AcceptFence() = 0;
};

enum class [[nodiscard]] ClaimResult {
  kRow,   // the row may be written
  kFull,  // no space within the time-out; ask again
};

// Where a lane loop's rows go: a shared-memory ring in an actor, episode buffers in a collector.
// Worker thread only. The loop claims row t, has it written in place, completes it; rows become
// visible to the other side in batches, or at once with Flush.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual const RowLayout& layout() const = 0;
  // Gives the next row's memory, uninitialised. Waits at most `timeout_ns` for space.
  virtual ClaimResult Claim(RowView& row, std::int64_t timeout_ns) = 0;
  // Lane `lane` plays `token` from the next row on.
  virtual void OnToken(int lane, const Token& token) {
    static_cast<void>(lane);
    static_cast<void>(token);
  }
  // The claimed row is complete; publishes when a commit stride is full.
  virtual void Complete() = 0;
  // Publishes every complete row now: before the worker blocks, and at the end.
  virtual void Flush() = 0;
  // Rows that have reached the other side: after Flush all of them, or fewer where it acknowledges
  // rows later. Episodes whose last row is below may be reported.
  virtual std::uint64_t PublishedRows() const = 0;
};

// Told of what happened to tokens. Called on the worker's thread; must not block.
class LaneListener {
 public:
  virtual ~LaneListener() = default;
  // Episodes whose last row the other side can see.
  virtual void OnEpisodes(std::span<const EpisodeResult> episodes) = 0;
  // Tokens given back unfinished: "drain", "not_finite", "policy" or "reset".
  virtual void OnAbandoned(std::span<const Token> tokens, const char* reason) = 0;
  // One row was made; nanoseconds spent in the environment, and in the policy or, where it is
  // decided later, between publication and answer.
  virtual void OnRow(std::int64_t env_ns, std::int64_t decide_ns) = 0;
  // The worker acts with newer weights from this row on: how many versions those before them were
  // behind. Not called for the first weights, nor where rows are decided later.
  virtual void OnNewWeights(std::uint32_t behind_versions) { static_cast<void>(behind_versions); }
};

enum class WaitReason { kToken = 0, kRing = 1, kWeights = 2, kAnswer = 3 };
inline constexpr int kWaitReasons = 4;

// The worker writes them, any thread reads them; relaxed, since no figure orders another.
struct alignas(128) LaneCounters {
  std::atomic<std::uint64_t> env_steps{0};   // actions executed
  std::atomic<std::uint64_t> rows{0};        // rows completed
  std::atomic<std::uint64_t> episodes{0};    // episodes announced
  std::atomic<std::uint64_t> not_finite{0};  // rows on which the policy failed
  std::atomic<std::int64_t> wait_ns[kWaitReasons]{};
  std::atomic<std::uint32_t> policy_version{0};
};

}  // namespace tetrion
