#pragma once

#include <array>
#include <string>

#include "lib/metrics/registry.h"
#include "lib/wire/handshakes.h"

namespace tetrion {

// How the connections to a socket of ours began or were refused. One thread calls Set.
class HandshakeRecorders {
 public:
  // `peer`: who connects there, "members".
  HandshakeRecorders(MetricsRegistry& registry, const std::string& peer) {
    for (std::size_t i = 0; i < wire::kHandshakeKinds; ++i) {
      counters_[i] = &registry.Counter("tetrion_link_handshakes_total",
                                       {peer, wire::Name(static_cast<wire::Handshake>(i))});
    }
  }

  // Totals never go down.
  void Set(const wire::HandshakeTotals& totals) {
    for (std::size_t i = 0; i < totals.size(); ++i) {
      counters_[i]->RaiseTo(static_cast<double>(totals[i]));
    }
  }

 private:
  std::array<HotCounter*, wire::kHandshakeKinds> counters_{};
};

}  // namespace tetrion
