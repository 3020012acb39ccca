#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_config.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/reply_queue.h"
#include "services/coordinator/run_book.h"

namespace tetrion::coordinator {

// The account's rules at work: the ROUTER socket, sessions, slots and the token ledger.
//
// Thread roles: its own thread calls DoWork (tests call it by hand); the banners below say what
// others may call. It waits on its socket and on the store's event only, and touches no file.
// Invariants:
//   1. What a reply promises is in the store before the reply is sent: every change has a ticket, a
//      reply waits for its change's ticket.
//   2. A lease is judged only in a cycle that read the socket to its end; when the last such cycle
//      is more than 1 s ago (a start, a stop, a slow disk, a backlog) every session gets a full
//      lease first.
//   3. A message counts only if it names this run, a session in the table, and the process that the
//      session belongs to. A number that the run does not allow ends the session that told it.
//   4. Every queue, table and reply list has a bound; without room the agent stays silent and
//      members ask again.
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
  // Longest cycle of a healthy agent: readiness ends when a cycle is older.
  static constexpr std::int64_t kMaxCycleNs = 5 * kNanosPerSecond;

  // Any thread.
  const std::string& endpoint() const { return server_.endpoint(); }
  // The run ends: grants stop, members are told, and finished() turns true when sessions and rings
  // are gone or the drain time-out is over.
  void RequestDrain() { drain_requested_.store(true, std::memory_order_release); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // All connections are closed and their queues freed before the next cycle; members come back.
  void RequestRebind() { rebind_requested_.store(true, std::memory_order_release); }
  // What the agent's own tables may take of the process's memory, at most half a second old.
  std::uint64_t TableBytes() const { return table_bytes_.load(std::memory_order_relaxed); }
  // The lock of the learner's region was seen free at `at_ns` of the clock: a learner that held it
  // before is dead.
  void LearnerRegionFree(std::int64_t at_ns) {
    region_free_ns_.store(at_ns, std::memory_order_release);
  }
  // The status as one line of JSON, at most half a second old.
  std::string Status() const TETRION_EXCLUDES(status_mu_);
  // Members with an HTTP endpoint, and a number that grows when that list changes.
  std::vector<Member> Members() const TETRION_EXCLUDES(status_mu_);
  std::uint64_t members_revision() const {
    return members_revision_.load(std::memory_order_acquire);
  }

 private:
  // The cycle.
  int SendCommitted();
  int ReadSocket();
  void JudgeLeases();
  void Housekeeping();
  void DrainStep();
  void PublishStatus() TETRION_EXCLUDES(status_mu_);
  void PublishMembers() TETRION_EXCLUDES(status_mu_);

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

  // Whether the message comes from a member of this run; the peer is told when not.
  bool BelongsHere(const wire::PeerId& peer, const wire::Message& message);
  // The session if it is alive and its own process speaks, with lease and connection renewed; else
  // nullptr, and the peer is told where that helps.
  Session* Live(const wire::PeerId& peer, std::uint64_t number);
  // Members that are heard for the first time since this start.
  void NoteReturn(const Session& session, bool is_new);
  // True after a refusal: the member told something `impossible`, its session has ended.
  bool RefuseImpossible(std::uint64_t number, const std::string& impossible);
  void EndSession(std::uint64_t number, const std::string& why, bool returns);
  void EndRefused(std::uint64_t number, wire::RefuseReason reason, const std::string& text);
  bool IsLeaving(std::uint64_t number);
  void RefuseUnusableRing(const SlotTable::Owner& owner, const wire::RingGone& m);

  // Registration.
  bool Welcome(const wire::PeerId& peer, const wire::Register& m, const Session* present);
  bool LearnerIsTaken(const wire::PeerId& peer);
  bool IsRepeated(const wire::PeerId& peer, const wire::Register& m, const Session& session);
  Session& OpenSession(const wire::Register& m);
  wire::Registered Describe(const Session& session, const std::vector<std::int32_t>& slots) const;

  // Answers.
  void Refuse(const wire::PeerId& peer, wire::RefuseReason reason, const std::string& text);
  void ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                  wire::Message message);
  void Send(const wire::PeerId& peer, const wire::Message& message);
  void SendRings();
  wire::HeartbeatAck AckFor(const Session& session);
  // One line a second at most: a hostile peer must not fill the log.
  void LogOdd(const std::string& what);

  // Immutable after construction.
  const ControlConfig config_;
  const std::string config_text_;
  const std::uint64_t epoch_, run_id_;
  StoreAgent& store_;
  ControlMetrics& metrics_;
  const Clock& clock_;

  // Control agent only.
  wire::ControlServer server_;
  wire::Identity sender_;  // of the message being handled
  RunBook book_;
  ReplyQueue replies_;
  std::uint64_t slots_ticket_ = 0;  // of the newest change of a slot
  std::uint64_t ended_ticket_ = 0;  // of the newest end of a session
  bool rings_due_ = false;          // the learner's list is not the newest
  std::uint64_t rings_told_ = 0;    // revision last sent to the learner
  bool members_changed_ = true;
  const std::int64_t start_ns_;
  std::int64_t last_return_ns_ = 0;  // of a member of an earlier start; 0: none yet
  std::int64_t last_judged_ns_ = 0;  // last cycle that read the socket to its end; 0: none yet
  std::int64_t last_steps_ns_ = 0, last_status_ns_ = 0;
  std::int64_t drain_deadline_ns_ = 0;
  std::int64_t last_odd_log_ns_ = 0;

  // Shared atomics and what status_mu_ guards.
  std::atomic<bool> drain_requested_{false}, draining_{false}, finished_{false};
  std::atomic<bool> rebind_requested_{false};
  std::atomic<std::uint64_t> table_bytes_{0};
  std::atomic<std::int64_t> region_free_ns_{0};  // 0: never seen free
  std::atomic<std::uint64_t> members_revision_{0};
  mutable Mutex status_mu_;
  std::string status_ TETRION_GUARDED_BY(status_mu_);
  std::vector<Member> members_ TETRION_GUARDED_BY(status_mu_);
};

}  // namespace tetrion::coordinator
