#pragma once

#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "services/common/handshake_recorders.h"
#include "services/learner/rows_agent.h"

namespace tetrion::learner {

// The recorders of remote rows. One thread at a time calls Refresh.
class RowsMetrics {
 public:
  explicit RowsMetrics(MetricsRegistry& registry);
  // Brings the scraped figures up to the agent's counters.
  void Refresh(const RowsAgent& rows);

 private:
  LinkRecorders link_;
  HandshakeRecorders handshakes_;
  HotCounter &accepted_, &duplicate_, &gap_, &beyond_;
  HotCounter &bytes_, &payload_bytes_, &weights_bytes_;
  HotCounter &weights_refused_, &silent_, &broken_, &hang_ups_;
  HotGauge& streams_;
};

}  // namespace tetrion::learner
