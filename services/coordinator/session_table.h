#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/clock.h"
#include "lib/wire/messages.h"

namespace tetrion::coordinator {

// One process's membership, from registration to goodbye, expiry or its rings' release.
struct Session {
  std::uint64_t number = 0;
  wire::Role role = wire::Role::kActor;
  std::string name;
  std::uint64_t process = 0;  // wire::Identity::process; only this process may speak for it
  std::uint32_t workers = 0;
  std::uint64_t last_request = 0;  // number of the newest grant request that was met
  bool region_held = false;        // learner: it holds its region's lock
  std::string http_endpoint;
  std::string rows_endpoint;  // learner: as it registered; empty after a restart of ours
  std::string rows_key;
  std::string peer;  // connection it was last heard on; empty after a restart of ours
  std::uint64_t registered_ticket = 0;  // of the change that its newest registration made
  std::uint64_t registration = 0;       // newest one's number; 0 after a restart of ours
  std::int64_t region_held_ns = 0;      // since when; of this start
  std::int64_t expires_ns = 0;
  std::int64_t heard_ns = 0;
  std::string phase;
  std::vector<wire::Stat> stats;  // of the last heartbeat

  // Whether the learner's list of rings may change with it; the learner waits for the list itself.
  bool MayHaveSlots() const { return role == wire::Role::kLearner || workers > 0; }
};

// Who is alive. A session's number is its sequence number, which comes from the store and goes back
// there before the session is told of, above 32 bits that no other process can guess: never reused,
// and ordered by age. A number that is not in the table is fenced. Leases are given, never taken
// early: Renew on a message, GiveFullLeases after a start or a stall of our own; the owner ends
// what Expired lists. Every call but GiveFullLeases and OldestSilenceNs costs the same with ten
// thousand sessions as with one. One thread; the clock is monotonic.
class SessionTable {
 public:
  // `secret`: random, of this start.
  SessionTable(const Clock& clock, std::int64_t lease_ns, std::uint64_t next_sequence,
               std::uint64_t secret);

  static std::uint64_t SequenceOf(std::uint64_t number) { return wire::SessionSequence(number); }
  // The number that Open will give.
  std::uint64_t next_number() const;
  // A new session with a full lease; its process has none. The reference stays valid until Close.
  Session& Open(const Session& description);
  // A session read from the store, with its number and a full lease.
  void Restore(const Session& session);
  // nullptr: fenced or never given.
  Session* Find(std::uint64_t number);
  // The live session of that process.
  Session* FindProcess(std::uint64_t process);
  Session* Learner() { return learner_ == 0 ? nullptr : Find(learner_); }
  void Renew(Session& session);
  void GiveFullLeases();
  // Sessions whose lease is over, oldest first.
  std::vector<std::uint64_t> Expired() const;
  // Fences the number.
  void Close(std::uint64_t number);

  const std::map<std::uint64_t, Session>& sessions() const { return sessions_; }
  std::size_t Count(wire::Role role) const {
    const std::size_t learners = learner_ == 0 ? 0 : 1;
    return role == wire::Role::kLearner ? learners : sessions_.size() - learners;
  }
  std::uint64_t next_sequence() const { return next_sequence_; }
  std::int64_t lease_ns() const { return lease_ns_; }
  // Nanoseconds since the session that is silent for longest was heard; 0 without sessions.
  std::int64_t OldestSilenceNs() const;

 private:
  using LeaseOrder = std::list<std::uint64_t>;
  Session& Insert(const Session& session);

  const Clock& clock_;
  const std::int64_t lease_ns_;
  const std::uint64_t secret_;
  std::uint64_t next_sequence_;
  std::map<std::uint64_t, Session> sessions_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_process_;
  LeaseOrder by_lease_;  // every lease has the same length: renewed last, ends last
  std::unordered_map<std::uint64_t, LeaseOrder::iterator> lease_of_;
  std::uint64_t learner_ = 0;
};

}  // namespace tetrion::coordinator
