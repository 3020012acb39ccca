#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/wire/messages.h"
#include "lib/wire/socket.h"
#include "services/common/handshake_recorders.h"
#include "services/coordinator/ledger.h"
#include "services/coordinator/run_state.h"

namespace tetrion::coordinator {

// How a session ended; died: its learner or its rings say that the process is gone.
enum class SessionEnd { kGoodbye, kDied, kLease, kRefused };

// The control agent's recorders. The control agent is the only writer.
class ControlMetrics {
 public:
  static constexpr std::size_t kRefuseReasons = 12;

  ControlMetrics(MetricsRegistry& registry, const std::string& env);

  // What the run had counted before this start, once and before the first Update. Counters are of
  // this start, as every counter: what a crash has taken back would look like one that began anew.
  void CountFrom(const LedgerCounts& stored) { before_ = stored; }

  // One message of the kind `message_index` (of wire::Message) was handled.
  void Handled(std::size_t message_index, double seconds) {
    request_seconds_[message_index]->Observe(seconds);
  }
  void Episodes(std::span<const wire::EpisodeReport> episodes);
  void Fenced() { fenced_->Increment(); }
  void Ended(SessionEnd end) { ended_.at(static_cast<std::size_t>(end))->Increment(); }
  void Refused(wire::RefuseReason reason);
  // A message for a session by a process that the session does not belong to.
  void Impostor() { impostor_->Increment(); }
  struct Gauges {
    LedgerCounts tokens;
    std::size_t actors = 0;
    double oldest_seconds = 0;  // since the most silent session was heard
    std::size_t replies = 0;    // waiting for the store
    std::size_t store_queued = 0;
    bool store_paused = false;
    std::uint64_t store_log_bytes = 0;
  };
  // A few times a second.
  void Update(const Gauges& gauges, const EpisodeWindow& window, const wire::LinkStats& link);
  void Update(const wire::HandshakeTotals& handshakes) { handshakes_.Set(handshakes); }

 private:
  LedgerCounts before_;  // this start
  std::array<HotHistogram*, std::variant_size_v<wire::Message>> request_seconds_{};
  HotCounter *issued_, *done_, *abandoned_, *freed_, *duplicate_, *refused_, *fenced_;
  std::array<HotCounter*, kRefuseReasons> refusals_{};  // by reason, from 1
  HotCounter* impostor_;
  std::array<HotCounter*, 4> ended_{};  // by SessionEnd
  HotGauge *outstanding_, *actors_, *oldest_seconds_, *replies_, *store_queued_, *store_paused_,
      *store_log_;
  HotHistogram *return_, *length_, *lines_;
  HotGauge *return_mean_, *length_mean_, *lines_mean_;
  LinkRecorders link_;
  HandshakeRecorders handshakes_;
};

}  // namespace tetrion::coordinator
