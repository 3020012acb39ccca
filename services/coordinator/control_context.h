#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_config.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/reply_queue.h"
#include "services/coordinator/run_book.h"

namespace tetrion::coordinator {

// What the parts of the control agent share: the socket, the tables of the run, the way to the
// store, and the answers that wait for it. Control agent only, but for draining().
class ControlContext {
 public:
  // Binds at once: Error(kUsage) when the address is in use.
  ControlContext(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
                 ControlMetrics& metrics, const Clock& clock);

  // --- immutable after construction ---
  const ControlConfig config;
  const std::uint64_t epoch, run_id;
  StoreAgent& store;
  ControlMetrics& metrics;
  const Clock& clock;

  // --- control agent only ---
  wire::ControlServer server;
  wire::Identity sender;  // of the message being handled
  RunBook book;
  std::uint64_t slots_ticket = 0;  // of the newest change of a slot
  std::uint64_t ended_ticket = 0;  // of the newest end of a session
  bool members_changed = true;     // since the list of members was published

  // Sends at once: only what promises nothing, or what is committed.
  void Send(const wire::PeerId& peer, const wire::Message& message);
  // Sends once the store has committed `ticket`, unless `session` is fenced by then (0: in any
  // case). A full queue drops the reply; its member asks again.
  void ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                  wire::Message message);
  void Refuse(const wire::PeerId& peer, wire::RefuseReason reason, const std::string& text);
  wire::HeartbeatAck AckFor(const Session& session);
  // Every reply whose ticket is committed. Returns how many.
  int SendCommitted();
  const ReplyQueue& replies() const { return replies_; }
  // One line a second at most: a hostile peer must not fill the log.
  void LogOdd(const std::string& what);
  void StartDrain() { draining_.store(true, std::memory_order_release); }

  // --- any thread ---
  // The run ends: grants stop, new members are refused.
  bool draining() const { return draining_.load(std::memory_order_acquire); }

 private:
  ReplyQueue replies_;
  std::int64_t last_odd_log_ns_ = 0;
  std::atomic<bool> draining_{false};  // set by StartDrain; pairs with draining
};

}  // namespace tetrion::coordinator
