#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/wire/messages.h"

namespace tetrion {

// One process's membership, from registration to goodbye, expiry or its rings' release.
struct Session {
  std::uint64_t number = 0;
  wire::Role role = wire::Role::kActor;
  std::string name;
  std::uint64_t nonce = 0;  // of the process; 0: none
  std::string http_endpoint;
  std::string peer;  // connection it was last heard on; empty after a restart of ours
  std::int64_t expires_ns = 0;
  std::int64_t heard_ns = 0;
  // env_steps is what its process last told; a process we know nothing of counts from what it
  // tells first, so that no step is counted twice.
  std::uint64_t env_steps = 0;
  bool env_steps_known = true;
  std::string phase;
  std::vector<wire::Stat> stats;  // of the last heartbeat
};

// Who is alive. Numbers are never reused: the next one comes from the store and goes back there
// before it is told. A number not in the table is fenced. One thread; time comes from the clock
// given, which is monotonic. Leases are given, never taken early: Renew on a heartbeat,
// GiveFullLeases after a start or a stall of our own, and only TakeExpired ends them.
class SessionTable {
 public:
  SessionTable(const Clock& clock, std::int64_t lease_ns, std::uint64_t next_number);

  // A new session with a full lease. The reference stays valid until Close.
  Session& Open(const Session& description);
  // A session read from the store, with its number and a full lease.
  void Restore(const Session& session);
  // nullptr: fenced or never given.
  Session* Find(std::uint64_t number);
  // The live session of that connection or process, for a registration that was repeated.
  Session* FindSame(wire::Role role, const std::string& peer, std::uint64_t nonce);
  Session* Learner();
  void Renew(Session& session);
  void GiveFullLeases();
  // Sessions whose lease is over; the caller ends each of them (Close and the ledger).
  std::vector<std::uint64_t> Expired() const;
  // Fences the number. Remembers the steps of its process for a registration that names it.
  void Close(std::uint64_t number);
  // Steps an ended session's process had told; false when that is not known (any more).
  bool EndedSteps(std::uint64_t number, std::uint64_t* env_steps) const;

  const std::map<std::uint64_t, Session>& sessions() const { return sessions_; }
  std::size_t Count(wire::Role role) const;
  std::uint64_t next_number() const { return next_number_; }
  std::int64_t lease_ns() const { return lease_ns_; }
  // Nanoseconds since the session that is silent for longest was heard; 0 without sessions.
  std::int64_t OldestSilenceNs() const;

 private:
  static constexpr std::size_t kMaxEnded = 4096;  // remembered steps of ended sessions

  const Clock& clock_;
  const std::int64_t lease_ns_;
  std::uint64_t next_number_;
  std::map<std::uint64_t, Session> sessions_;
  std::map<std::uint64_t, std::uint64_t> ended_steps_;
};

}  // namespace tetrion
