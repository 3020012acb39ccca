#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/coordinator/control_context.h"
#include "services/coordinator/leases.h"
#include "services/coordinator/rings.h"

namespace tetrion::coordinator {

// Who may join, with which session and which slots.
//
// Invariants:
//   1. A process has one session at most: a registration that is said again because its answer was
//      lost finds the session that it made.
//   2. A run has one learner at most.
//   3. A member knows its session only once the session is in the store.
// Control agent only.
class Registration : private ControlPart {
 public:
  Registration(ControlContext& context, Leases& leases, Rings& rings);

  void On(const wire::PeerId& peer, const wire::Register& m);

  // Whose slots a process that finds too few waits for.
  enum class Awaited { kNothing, kTheGone, kItsName };

 private:
  bool Welcome(const wire::PeerId& peer, const wire::Register& m, const Session* present);
  bool LearnerIsTaken(const wire::PeerId& peer);
  bool IsRepeated(const wire::PeerId& peer, const wire::Register& m, const Session& session);
  Awaited SlotsAwaited(const wire::Register& m, std::uint32_t workers) const;
  void RefuseWithoutSlots(const wire::PeerId& peer, const wire::Register& m, std::uint32_t workers);
  Session& OpenSession(const wire::Register& m);
  wire::Registered Describe(const Session& session, const std::vector<std::int32_t>& slots) const;

  Leases& leases_;
  Rings& rings_;
  const std::string config_text_;  // the run's configuration as members are told it
};

// That a member is there, with its figures, and that it leaves: heartbeats and goodbyes. Control
// agent only.
class Attendance : private ControlPart {
 public:
  Attendance(ControlContext& context, Leases& leases, Rings& rings)
      : ControlPart(context), leases_(leases), rings_(rings) {}

  void On(const wire::PeerId& peer, const wire::Heartbeat& m);
  void On(const wire::PeerId& peer, const wire::Goodbye& m);

 private:
  Leases& leases_;
  Rings& rings_;
};

}  // namespace tetrion::coordinator
