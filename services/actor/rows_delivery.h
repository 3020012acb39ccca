#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/core/clock.h"
#include "lib/weights/remote_weights.h"
#include "lib/wire/rows_messages.h"
#include "lib/wire/rows_packing.h"
#include "services/actor/row_stream.h"
#include "services/actor/weights_pull.h"

namespace tetrion::actor {

// What an actor and the learner owe each other over one connection: every worker's rows, the
// weights, and signs of life. Apart from any socket, so that a model of a bad network can drive it;
// one thread, the courier's.
class RowsDelivery {
 public:
  struct Config {
    std::uint64_t weights_bytes = 0;  // see WeightsPull
    bool compress = false;
  };
  // Sums over the workers.
  struct Totals {
    RowStream::Stats streams;
    WeightsPull::Stats weights;
    std::uint64_t unacknowledged = 0;  // rows written and not released yet
  };

  // `inbox` must outlive the delivery.
  RowsDelivery(const Config& config, WeightsInbox& inbox, const Clock& clock);
  // Before the first Send.
  void Add(RowStream stream) { streams_.push_back(std::move(stream)); }

  // Sends what is due and there is room for. Returns how many messages.
  int Send(RowsPort& port);
  // Throws Error(kTryAgain) when the learner will never take a worker's rows.
  void On(const wire::RowsMessage& message, std::span<const std::byte> payload = {});
  // The connection is a new one, to the same learner or another: all that is unanswered is said
  // again.
  void OnReconnect();

  // Whether the connection's handshake went wrong: it is silent after 3 s, which say nothing of how
  // slow the network is.
  void SetRefused(bool refused) { refused_ = refused; }

  // Nothing was heard for so long that the connection should be opened anew: 3 s, up to 24 s over a
  // slow connection.
  bool Silent() const;
  // When any message came last, and the silence that is usual between two.
  std::int64_t heard_ns() const { return heard_ns_; }
  std::int64_t usual_silence_ns() const { return usual_silence_ns_; }
  // Every worker's rows were received and the learner knows that none follows.
  bool Done() const;
  Totals totals() const;

 private:
  void OnRefused(const wire::OpenRefused& refused) const;
  void OnAck(const wire::RowsAck& ack, std::int64_t silent_ns);
  std::int64_t SilenceNs() const;

  const bool compress_;
  WeightsInbox& inbox_;
  const Clock& clock_;
  std::vector<RowStream> streams_;
  std::size_t turn_ = 0;  // stream that is asked first
  WeightsPull weights_;
  wire::RowsPacker packer_;
  std::int64_t heard_ns_;      // any message
  std::int64_t connected_ns_;  // since when the connection is allowed to be silent
  std::int64_t ping_due_ns_ = 0;
  std::uint64_t pings_ = 0;  // sent
  // How slow the connection is. An uplink that carries a batch for longer than the learner may be
  // silent would be opened anew before any arrives: so each connection over which no row arrived
  // doubles that time and halves the batches.
  std::int64_t usual_silence_ns_;  // twice the one before the last answer to rows, 3 s at least
  int doublings_ = 0, halvings_ = 0;
  bool refused_ = false;
  bool progress_ = true;  // rows arrived over this connection, or it is the first
};

}  // namespace tetrion::actor
