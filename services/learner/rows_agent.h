#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/mutex.h"
#include "lib/wire/rows_socket.h"
#include "services/learner/remote_streams.h"
#include "services/learner/weights_shelf.h"

namespace tetrion::learner {

// Serves the actors of other hosts: takes their rows (RemoteStreams), hands out weights
// (WeightsShelf) to those that have a stream, or had one until lately.
//
// Thread role: DoWork on the rows thread.
class RowsAgent final : public Agent, private RemoteStreams::RowsOut {
 public:
  struct Parts {
    std::unique_ptr<wire::RowsServer> socket;
    WeightsSlotReader weights;
    Bell ingest;
  };
  // The board outlives the agent.
  RowsAgent(const RemoteStreams::Config& config, Parts parts, RemoteBoard& board,
            const Clock& clock = MonotonicClock::Get());

  std::string name() const override { return "rows"; }
  int DoWork() override;

  // --- any thread ---
  const RemoteCounters& counters() const { return streams_.counters(); }
  std::uint64_t weights_bytes() const { return weights_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t weights_refused() const { return weights_refused_.load(std::memory_order_relaxed); }
  // Connections closed for their input, as of the last cycle; so are the next two.
  std::uint64_t hang_ups() const { return hang_ups_.load(std::memory_order_relaxed); }
  wire::LinkStats link_stats() const TETRION_EXCLUDES(mu_);
  wire::HandshakeTotals handshakes() const TETRION_EXCLUDES(mu_);

 private:
  void Send(const wire::PeerId& peer, const wire::RowsMessage& message) override;
  void Receive(const wire::RowsReceived& received);
  void GiveWeights(const wire::RowsReceived& received, const wire::WeightsGet& get);

  const std::unique_ptr<wire::RowsServer> socket_;
  WeightsShelf shelf_;
  RemoteStreams streams_;
  const Clock& clock_;
  std::int64_t heard_ns_ = 0;  // the last message of any actor: without one no copy is made
  std::int64_t next_complaint_ns_ = 0;
  std::atomic<std::uint64_t> weights_bytes_{0};    // sent; relaxed
  std::atomic<std::uint64_t> weights_refused_{0};  // requests; relaxed
  std::atomic<std::uint64_t> hang_ups_{0};         // relaxed
  mutable Mutex mu_;
  wire::LinkStats link_stats_ TETRION_GUARDED_BY(mu_);
  wire::HandshakeTotals handshakes_ TETRION_GUARDED_BY(mu_) = {};
};

}  // namespace tetrion::learner
