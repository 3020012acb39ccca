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

// The recorders of one control socket. One thread, the link's, calls Set.
class LinkRecorders {
 public:
  // A socket that only listens never connects again and serves no such count.
  enum class End { kConnects, kListens };

  // `peer`: who is at the other end, "coordinator".
  LinkRecorders(MetricsRegistry& registry, const std::string& peer, End end = End::kConnects)
      : messages_in_(registry.Counter("tetrion_link_messages_total", {peer, "in"})),
        messages_out_(registry.Counter("tetrion_link_messages_total", {peer, "out"})),
        bytes_in_(registry.Counter("tetrion_link_bytes_total", {peer, "in"})),
        bytes_out_(registry.Counter("tetrion_link_bytes_total", {peer, "out"})),
        malformed_(registry.Counter("tetrion_link_malformed_total", {peer})),
        reconnects_(end == End::kListens
                        ? nullptr
                        : &registry.Counter("tetrion_link_reconnects_total", {peer})) {}

  // Totals never go down; a reader between two calls sees the earlier ones.
  void Set(const LinkTotals& totals) {
    messages_in_.RaiseTo(static_cast<double>(totals.messages_in));
    messages_out_.RaiseTo(static_cast<double>(totals.messages_out));
    bytes_in_.RaiseTo(static_cast<double>(totals.bytes_in));
    bytes_out_.RaiseTo(static_cast<double>(totals.bytes_out));
    malformed_.RaiseTo(static_cast<double>(totals.malformed));
    if (reconnects_ != nullptr) reconnects_->RaiseTo(static_cast<double>(totals.reconnects));
  }

 private:
  HotCounter &messages_in_, &messages_out_, &bytes_in_, &bytes_out_, &malformed_;
  HotCounter* const reconnects_;
};

}  // namespace tetrion
