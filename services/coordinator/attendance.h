#pragma once

#include "services/coordinator/control_context.h"
#include "services/coordinator/leases.h"
#include "services/coordinator/rings.h"

namespace tetrion::coordinator {

// That a member is there, with its figures, and that it leaves: heartbeats and goodbyes. Control
// agent only.
class Attendance {
 public:
  Attendance(ControlContext& context, Leases& leases, Rings& rings);

  void On(const wire::PeerId& peer, const wire::Heartbeat& m);
  void On(const wire::PeerId& peer, const wire::Goodbye& m);

 private:
  ControlContext& context_;
  Leases& leases_;
  Rings& rings_;
  RunBook& book_;
  StoreAgent& store_;
  const Clock& clock_;
};

}  // namespace tetrion::coordinator
