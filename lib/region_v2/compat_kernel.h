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

// The kernel's end of a compatibility region: starts episodes, receives observations, sends
// actions.
//
// Thread role: one thread, the same from construction on. Memory: the mapped region is the
// caller's (CompatRegion) and must outlive this. Nothing allocates after construction.
//
// Every call that waits returns by answer_timeout_ns at the latest; its results besides kOk are
// kTimeout, kPeerLost, kStopped, kCorrupt, kRefused and kBusy, and kSeqError where OBSs are read.
// After any of them but kCorrupt the next Reset starts afresh.
class CompatKernel {
 public:
  // Lays the region out or adopts it (LayOutOrAdoptCompat). Throws Error(kConfig) with what is
  // wrong when it holds something else or is too small.
  CompatKernel(std::span<std::byte> memory, const CompatEndConfig& config);
  CompatKernel(CompatKernel&&) noexcept;
  ~CompatKernel();

  // Waits until a host answers a PING, at most `timeout_ns`; a host that is not there yet does not
  // count as lost. Optional: Reset does as much where old commands may still be in the ring.
  CompatResult Connect(std::int64_t timeout_ns);

  // Starts an episode and receives its first observation (seq 0): streamed if both ends can, else
  // with blobs. The same as BeginReset and FinishReset.
  CompatResult Reset(CompatObs& first);
  // Sends `action` for the last observation and receives the next one, in either mode. The last
  // observation must not be done (CHECK). After `next.done > 0.5` only Reset goes on.
  CompatResult Step(std::uint16_t action, CompatObs& next);

  // The halves of the two above, for callers with something to do in between.
  CompatResult BeginReset();
  CompatResult FinishReset(CompatObs& first);
  CompatResult SendAction(std::uint16_t action);
  CompatResult ReceiveObs(CompatObs& next);

  // Asks for the environment's metadata. Not while an OBS is outstanding (CHECK).
  CompatResult Metadata(CompatMetadata& metadata);
  CompatResult Ping(std::uint32_t payload, std::uint32_t& result);
  CompatResult Print(std::uint32_t payload);
  // Sends any command and waits for its response; kOk means answered, with whatever status.
  CompatResult Command(std::uint16_t cmd, std::uint32_t payload, CompatResponse& response);

  // The weights uploaded under `model_id`; nullopt when the heap has no such blob.
  std::optional<std::array<float, 4>> Weights(float model_id) const;

  // Moves this end's heartbeats, for a caller that computes longer than the host's peer time-out.
  void Heartbeat();

  bool streaming() const;              // whether the running episode is streamed
  bool adopted() const;                // whether the region had been laid out before
  std::uint32_t epoch() const;         // of the command ring
  std::uint32_t error_result() const;  // `result` of the last ERROR response
  // After kCorrupt, kSeqError, kRefused and kBusy: what happened. Connect forgets it.
  const std::string& problem() const;
  const CompatStats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tetrion
