#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "lib/metrics/registry.h"
#include "lib/wire/messages.h"
#include "lib/wire/socket.h"
#include "services/coordinator/ledger.h"
#include "services/coordinator/run_state.h"

namespace tetrion {

// The control agent's recorders. The control agent is the only writer.
class ControlMetrics {
 public:
  ControlMetrics(MetricsRegistry& registry, const std::string& env);

  // One message of the kind `message_index` (of wire::Message) was handled.
  void Handled(std::size_t message_index, double seconds) {
    request_seconds_[message_index]->Observe(seconds);
  }
  void Episode(const wire::EpisodeReport& episode);
  void Fenced() { fenced_->Increment(); }
  // A few times a second.
  void Update(const LedgerCounts& tokens, std::size_t actors, double oldest_seconds,
              const EpisodeWindow& window, const wire::LinkStats& link);

 private:
  static void RaiseTo(HotCounter& counter, std::uint64_t value) {
    counter.Add(static_cast<double>(value) - counter.Value());
  }

  std::array<HotHistogram*, std::variant_size_v<wire::Message>> request_seconds_{};
  HotCounter *issued_, *done_, *abandoned_, *freed_, *duplicate_, *refused_, *fenced_;
  HotGauge *outstanding_, *actors_, *oldest_seconds_;
  HotHistogram *return_, *length_, *lines_;
  HotGauge *return_mean_, *length_mean_, *lines_mean_;
  HotCounter *messages_in_, *messages_out_, *bytes_in_, *bytes_out_, *malformed_;
};

}  // namespace tetrion
