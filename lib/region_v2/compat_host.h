#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/region_v2/compat_blocks.h"
#include "lib/region_v2/compat_end.h"

namespace tetrion {

// What a step of the environment brought.
struct CompatStep {
  std::array<float, 4> obs = {};
  float reward = 0;
  bool terminated = false;
  bool truncated = false;  // reported as done; only CompatStats keeps the difference
};

// The environment behind a host. Called by the host's thread only; owned by the caller.
class CompatEnv {
 public:
  virtual ~CompatEnv() = default;
  virtual CompatMetadata metadata() const = 0;
  // Begins the next episode; returns its first observation.
  virtual std::array<float, 4> Reset() = 0;
  // `action` is below metadata().action_count; never called after the end of an episode.
  virtual CompatStep Step(std::uint16_t action) = 0;
};

// The host's end of a compatibility region: owns the environment and the heap, answers commands,
// plays the streamed episode.
//
// Thread role: one thread, the same from construction on. Memory: region and environment are the
// caller's and must outlive this. Nothing allocates after construction.
//
// A kernel that breaks the protocol (wrong seq, action after done, unknown action) is answered
// ERROR and its stream closed until the next ENV_RESET; the host stays usable.
class CompatHost {
 public:
  // Waits up to `timeout_ns` for the kernel's magics, then attaches; commands already queued will
  // be served. Throws Error: kTryAgain when no kernel lays the region out in time; kConfig with
  // what is wrong when the region is damaged or too small. A stop flag ends the wait with
  // kTryAgain.
  CompatHost(std::span<std::byte> memory, CompatEnv& env, const CompatEndConfig& config,
             std::int64_t timeout_ns);
  CompatHost(CompatHost&&) noexcept;
  ~CompatHost();

  // Four weights of the linear policy, uploaded as a blob at the next reset; observations then
  // carry its id.
  void SetWeights(const std::array<float, 4>& weights);

  // Serves until `timeout_ns` is over (kOk), or until kPeerLost, kStopped, kCorrupt, or kSeqError
  // (a protocol error was answered; see problem()). May be called again after all but kCorrupt.
  CompatResult Serve(std::int64_t timeout_ns);
  // Handles what is queued, waits for nothing: kOk, kIdle, kSeqError or kCorrupt.
  CompatResult Poll();

  // Moves this end's heartbeats, for a caller busy elsewhere.
  void Heartbeat();

  // Whether a kernel has shown a sign of life since construction. What a dead one left in the
  // rings is none.
  bool kernel_seen() const;
  bool streaming() const;              // whether the running episode is streamed
  const std::string& problem() const;  // after kCorrupt and kSeqError: what happened
  const CompatStats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tetrion
