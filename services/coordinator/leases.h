#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "services/coordinator/control_context.h"

namespace tetrion::coordinator {

// Whose messages count, and how a session ends: by its lease, by a refusal, by its owner.
//
// Invariants:
//   1. A lease is judged only in a cycle that read the socket to its end; when the last such cycle
//      is more than 1 s ago, or half a lease (a start, a stop, a slow disk, a backlog),
//      every session gets a full lease first.
//   2. A message counts only if it names a session in the table and comes from the process that the
//      session belongs to. A number that the run does not allow ends the session that told it.
//   3. A member is told of its session's end only once the end is stored.
// Control agent only.
class Leases : private ControlPart {
 public:
  explicit Leases(ControlContext& context);

  // The session if it is alive and its own process speaks, with lease and connection renewed; else
  // nullptr, and the peer is told where that helps.
  Session* Live(const wire::PeerId& peer, std::uint64_t number);
  // Members that are heard for the first time since this start.
  void NoteReturn(const Session& session, bool is_new);
  // True after a refusal: the member told something `impossible`, its session has ended.
  bool RefuseImpossible(std::uint64_t number, const std::string& impossible);
  // `why` for the log.
  void EndSession(std::uint64_t number, const std::string& why, SessionEnd end);
  void EndRefused(std::uint64_t number, wire::RefuseReason reason, const std::string& text);
  // After a cycle that read the socket to its end.
  void JudgeLeases();

 private:
  const std::int64_t stall_ns_;
  const std::int64_t start_ns_;
  std::int64_t last_return_ns_ = 0;  // of a member of an earlier start; 0: none yet
  std::int64_t last_judged_ns_ = 0;  // last cycle that read the socket to its end; 0: none yet
};

// The end of a run: members are told, and it is over when their sessions are gone and everything
// is stored, or when its time is. Control agent only, but for Request.
class Drain : private ControlPart {
 public:
  explicit Drain(ControlContext& context) : ControlPart(context) {}

  // Any thread. The run also drains by itself, at --stop-after.
  void Request() { requested_.store(true, std::memory_order_release); }
  // Every cycle until it returns true: the run is over.
  bool Step();

 private:
  std::int64_t deadline_ns_ = 0;
  std::atomic<bool> requested_{false};  // pairs with the load in Step
};

}  // namespace tetrion::coordinator
