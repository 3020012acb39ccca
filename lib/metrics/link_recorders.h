#pragma once

#include <cstdint>
#include <string>

#include "lib/metrics/registry.h"

namespace tetrion {

// Running totals of a control connection, as its socket counts them.
struct LinkTotals {
  std::uint64_t messages_in = 0, messages_out = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t malformed = 0, reconnects = 0;
};

// The recorders of one control connection. One thread, the link's, calls Set.
class LinkRecorders {
 public:
  // `peer`: who is at the other end, "coordinator".
  LinkRecorders(MetricsRegistry& registry, const std::string& peer)
      : messages_in_(registry.Counter("tetrion_link_messages_total", {peer, "in"})),
        messages_out_(registry.Counter("tetrion_link_messages_total", {peer, "out"})),
        bytes_in_(registry.Counter("tetrion_link_bytes_total", {peer, "in"})),
        bytes_out_(registry.Counter("tetrion_link_bytes_total", {peer, "out"})),
        malformed_(registry.Counter("tetrion_link_malformed_total", {peer})),
        reconnects_(registry.Counter("tetrion_link_reconnects_total", {peer})) {}

  // Totals never go down; a reader between two calls sees the earlier ones.
  void Set(const LinkTotals& totals) {
    Raise(messages_in_, totals.messages_in);
    Raise(messages_out_, totals.messages_out);
    Raise(bytes_in_, totals.bytes_in);
    Raise(bytes_out_, totals.bytes_out);
    Raise(malformed_, totals.malformed);
    Raise(reconnects_, totals.reconnects);
  }

 private:
  static void Raise(HotCounter& counter, std::uint64_t to) {
    counter.Add(static_cast<double>(to) - counter.Value());
  }

  HotCounter &messages_in_, &messages_out_, &bytes_in_, &bytes_out_, &malformed_, &reconnects_;
};

}  // namespace tetrion
