#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/weights/remote_weights.h"
#include "lib/wire/rows_socket.h"
#include "services/actor/row_stream.h"
#include "services/actor/rows_delivery.h"

namespace tetrion::actor {

// Carries the rows of all workers to a learner on another host, and its weights back: the consumer
// of every ring, and the one socket to the learner. RowsDelivery is what it says; this is when and
// where. A learner that RowsDelivery finds silent, or that has another address or key, gets a new
// socket. Rows are encrypted when both ends have keys, and not sent at all when one of them has.
//
// Thread roles: DoWork belongs to the courier's thread; the other calls say theirs.
class Courier final : public Agent {
 public:
  struct Config {
    std::uint64_t run_id = 0;
    std::uint64_t process = 0;  // wire::Identity::process
    wire::CurveKeys keys;       // the actor's own; empty: plain
    RowsDelivery::Config delivery;
  };
  // `inbox` and `metrics` must outlive the courier.
  Courier(const Config& config, WeightsInbox& inbox, MetricsRegistry& metrics,
          const Clock& clock = MonotonicClock::Get());
  // Before the thread starts.
  void Add(RowStream stream) { delivery_.Add(std::move(stream)); }

  std::string name() const override { return "courier"; }
  // Blocks up to 10 ms. Throws Error(kConfig) when the learner speaks another protocol version or
  // has keys where this actor has none, kTryAgain when it refuses the rows for good or has no key
  // of use to this actor's.
  int DoWork() override;

  // --- any thread ---
  // Where the learner takes rows, host:port, and its public key there; empty: not known, and the
  // last known stays; without keys, `key` is empty.
  void SetLearner(const std::string& endpoint, const std::string& key = "") TETRION_EXCLUDES(mu_);
  // Every worker has closed its ring, and the learner has all of its rows.
  bool Done() const { return done_.load(std::memory_order_acquire); }
  // Why rows do not reach the learner at its known address, for people; empty: they do.
  std::string Problem() const TETRION_EXCLUDES(mu_);

 private:
  class Port;
  struct Learner {
    std::string endpoint, key;  // "tcp://host:port", empty: not known yet; Z85
  };
  struct Recorders {
    explicit Recorders(MetricsRegistry& metrics);
    LinkRecorders link;
    HotCounter &rows, &resent, &bytes, &impossible, &weights, &weights_refused;
    HotGauge& unacknowledged;
  };

  bool Connected() TETRION_EXCLUDES(mu_);
  void CheckKeys(const Learner& learner) const;
  void Open(const Learner& learner);
  int Receive();
  void SeeProblem() TETRION_EXCLUDES(mu_);
  void ShowTotals();

  const Config config_;
  const Clock& clock_;
  RowsDelivery delivery_;
  Recorders recorders_;
  std::unique_ptr<wire::RowsClient> client_;  // null until the learner's address is known
  std::int64_t opened_ns_ = 0;                // when it became known, or another
  std::string said_problem_;                  // of the handshake, as last logged
  std::int64_t totals_due_ns_ = 0;
  std::atomic<bool> done_{false};  // set by DoWork; pairs with Done

  mutable Mutex mu_;
  Learner learner_ TETRION_GUARDED_BY(mu_);
  std::string problem_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::actor
