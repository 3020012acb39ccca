#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_context.h"
#include "services/coordinator/grants.h"
#include "services/coordinator/leases.h"
#include "services/coordinator/membership.h"
#include "services/coordinator/rings.h"
#include "services/coordinator/run_book.h"

namespace tetrion::coordinator {

// A member and where its /metrics is.
struct Member {
  std::string name, http_endpoint;
  std::uint64_t sequence = 0;  // of its session; tells members of one name apart
  wire::Role role = wire::Role::kActor;
  bool operator==(const Member&) const = default;
};

// The account's rules at work: the cycle over the ROUTER socket, the leases, the drain and the
// status. What a message does stands with its part: membership, grants, rings.
//
// Thread roles: its own thread calls DoWork (tests call it by hand); the banners below say what
// others may call. It waits on its socket and on the store's event only, and touches no file.
// Invariants, of the parts too:
//   1. What a reply promises is in the store before the reply is sent: every change has a ticket, a
//      reply waits for its change's ticket.
//   2. Leases are judged only in a cycle that read the socket to its end.
//   3. A message counts only if it names this run, a session in the table, and the process that the
//      session belongs to.
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

  // Any thread.
  const std::string& endpoint() const { return context_.server.endpoint(); }
  // The run ends: grants stop, members are told, and finished() turns true when sessions and rings
  // are gone or the drain time-out is over.
  void RequestDrain() { drain_.Request(); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  bool draining() const { return context_.draining(); }
  // All connections are closed and their queues freed before the next cycle; members come back.
  void RequestRebind() { rebind_requested_.store(true, std::memory_order_release); }
  // What the agent's own tables may take of the process's memory, at most half a second old.
  std::uint64_t TableBytes() const { return table_bytes_.load(std::memory_order_relaxed); }
  // Whether and by whom the learner's region was seen held on this host at `at_ns` of the clock;
  // nothing: it cannot be seen. Where it is free a learner that held it before is dead.
  void SawLearnerRegion(const std::optional<RegionHold>& hold, std::int64_t at_ns) {
    context_.SawLearnerRegion(hold, at_ns);
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
  int ReadSocket();
  void Housekeeping();
  void PublishStatus() TETRION_EXCLUDES(status_mu_);
  void PublishMembers() TETRION_EXCLUDES(status_mu_);

  // A message, to the part that it is for.
  void Handle(const wire::ControlServer::Received& received);
  void Dispatch(const wire::PeerId& peer, wire::Message&& message);
  // Whether the message comes from a member of this run; the peer is told when not.
  bool BelongsHere(const wire::PeerId& peer, const wire::Message& message);

  // Control agent only.
  ControlContext context_;
  RunBook& book_;
  StoreAgent& store_;
  ControlMetrics& metrics_;
  const Clock& clock_;
  const ControlConfig& config_;
  Leases leases_;
  Rings rings_;
  Registration registration_;
  Grants grants_;
  Attendance attendance_;
  Drain drain_;
  std::int64_t last_steps_ns_ = 0, last_status_ns_ = 0;

  // Shared atomics and what status_mu_ guards.
  std::atomic<bool> finished_{false};
  std::atomic<bool> rebind_requested_{false};
  std::atomic<std::uint64_t> table_bytes_{0};
  std::atomic<std::uint64_t> members_revision_{0};
  mutable Mutex status_mu_;
  std::string status_ TETRION_GUARDED_BY(status_mu_);
  std::vector<Member> members_ TETRION_GUARDED_BY(status_mu_);
};

}  // namespace tetrion::coordinator
