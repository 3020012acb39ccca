#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_config.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/ledger.h"
#include "services/coordinator/run_state.h"
#include "services/coordinator/session_table.h"
#include "services/coordinator/slot_table.h"
#include "services/coordinator/store_agent.h"

namespace tetrion {

// The coordinator's mind: the ROUTER socket, sessions, slots and the token ledger.
//
// Thread roles: its own thread calls DoWork (tests call it by hand); the banners below say what
// others may call. Invariants:
//   1. What a reply promises is in the store before the reply is sent: every change has a ticket, a
//      reply waits for its change's ticket.
//   2. A lease is judged only after the socket was read; after a start or a stall of our own
//      (> 1 s between cycles) every session gets a full lease instead.
//   3. Nothing of a session that is not in the table is accepted; it is told so (Fenced).
class ControlAgent final : public Agent {
 public:
  // Binds at once: Error(kUsage) when the address is in use. `stored` is what Store::Load gave.
  // Everything by reference must outlive the agent.
  ControlAgent(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
               ControlMetrics& metrics, const Clock& clock);

  std::string name() const override { return "control"; }
  // Blocks up to 50 ms for a message or a commit.
  int DoWork() override;
  void OnClose() override;

  // Any thread.
  const std::string& endpoint() const { return server_.endpoint(); }
  // The run ends: grants stop, members are told, and finished() turns true when sessions and rings
  // are gone or the drain time-out is over.
  void RequestDrain() { drain_requested_.store(true, std::memory_order_release); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // The status as one line of JSON, at most half a second old.
  std::string Status() const TETRION_EXCLUDES(status_mu_);
  // Members with an HTTP endpoint, and a number that grows when they change.
  std::vector<Member> Members() const TETRION_EXCLUDES(status_mu_);
  std::uint64_t members_revision() const {
    return members_revision_.load(std::memory_order_acquire);
  }

 private:
  struct Pending {
    std::uint64_t ticket = 0;
    wire::PeerId peer;
    std::uint64_t session = 0;  // dropped when this one is fenced meanwhile; 0: never
    wire::Message message;
  };

  // The cycle.
  int SendCommitted();
  int ReadSocket();
  void KeepLeases(bool stalled);
  void Housekeeping();
  void DrainStep();
  void PublishStatus() TETRION_EXCLUDES(status_mu_);
  void AppendMetricsLine();

  // Messages (control_messages.cc, control_register.cc).
  void Handle(const wire::ControlServer::Received& received);
  void On(const wire::PeerId& peer, const wire::Register& m);
  void On(const wire::PeerId& peer, const wire::GrantRequest& m);
  void On(const wire::PeerId& peer, const wire::ReportBatch& m);
  void On(const wire::PeerId& peer, const wire::Abandon& m);
  void On(const wire::PeerId& peer, const wire::Heartbeat& m);
  void On(const wire::PeerId& peer, const wire::RingsReady& m);
  void On(const wire::PeerId& peer, const wire::RingGone& m);
  void On(const wire::PeerId& peer, const wire::Goodbye& m);
  // What only a coordinator says.
  template <typename Other>
  void On(const wire::PeerId& peer, const Other& m);

  // Registration.
  Session* FindRegistered(const wire::PeerId& peer, const wire::Register& m);
  bool Welcome(const wire::PeerId& peer, const wire::Register& m, const Session* present);
  Session& OpenSession(const wire::PeerId& peer, const wire::Register& m);
  wire::Registered Describe(const Session& session, const std::vector<std::int32_t>& slots) const;
  void Refuse(const wire::PeerId& peer, wire::RefuseReason reason, const std::string& text);

  // The session if it is alive, with its connection noted; else nullptr, and the peer is told.
  Session* Live(const wire::PeerId& peer, std::uint64_t number);
  void CountSteps(Session& session, std::uint64_t env_steps);
  void EndSession(std::uint64_t number, const char* why);
  bool CanStore() const { return !store_.Full() && store_.HasRoom(); }
  // Adds counts, changed ranges and sessions, and pushes. Returns the ticket.
  std::uint64_t Persist(StoreChange change, bool urgent);
  void ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                  wire::Message message);
  void Send(const wire::PeerId& peer, const wire::Message& message);
  void SendRings();
  wire::HeartbeatAck AckFor(const Session& session) const;

  // Immutable after construction.
  const ControlConfig config_;
  const std::string config_text_;
  const std::uint64_t epoch_, run_id_;
  StoreAgent& store_;
  ControlMetrics& metrics_;
  const Clock& clock_;

  // Control agent only.
  wire::ControlServer server_;
  Ledger ledger_;
  SessionTable sessions_;
  SlotTable slots_;
  RunState state_;
  std::uint32_t version_first_, version_limit_;
  std::uint64_t version_ticket_ = 0, slots_ticket_ = 0;
  std::uint64_t rings_told_ = 0;           // revision last sent to the learner
  std::deque<Pending> pending_;            // by ticket
  std::set<std::uint64_t> steps_changed_;  // sessions whose steps the store has not
  std::int64_t last_cycle_ns_ = 0;         // 0: no cycle yet
  std::int64_t last_steps_ns_ = 0, last_status_ns_ = 0, last_line_ns_ = 0;
  std::int64_t drain_deadline_ns_ = 0;
  std::int64_t last_malformed_log_ns_ = 0;

  // Shared atomics and what status_mu_ guards.
  std::atomic<bool> drain_requested_{false}, draining_{false}, finished_{false};
  std::atomic<std::uint64_t> members_revision_{0};
  mutable Mutex status_mu_;
  std::string status_ TETRION_GUARDED_BY(status_mu_);
  std::vector<Member> members_ TETRION_GUARDED_BY(status_mu_);
};

}  // namespace tetrion
