#pragma once

#include <cstdint>

#include "services/coordinator/control_context.h"
#include "services/coordinator/leases.h"

namespace tetrion::coordinator {

// Which rings exist: actors announce them, the learner tells of their ends, and gets the list
// whenever it may not have the newest.
//
// Invariants:
//   1. The learner is told a list only once it is in the store, and only the newest: a slow store
//      gathers none.
//   2. A ring that the learner cannot use ends the session of its process, which is banned: what it
//      plays never reaches the learner.
// Control agent only.
class Rings : private ControlPart {
 public:
  Rings(ControlContext& context, Leases& leases) : ControlPart(context), leases_(leases) {}

  void On(const wire::PeerId& peer, const wire::RingsReady& m);
  void On(const wire::PeerId& peer, const wire::RingGone& m);
  // The learner may lack the newest list.
  void ListIsDue() { rings_due_ = true; }
  // Every cycle.
  void SendDue();

 private:
  bool IsLeaving(std::uint64_t number);
  void RefuseUnusableRing(const SlotTable::Owner& owner, const wire::RingGone& m);
  void SendRings();

  Leases& leases_;
  bool rings_due_ = false;        // the learner's list is not the newest
  std::uint64_t rings_told_ = 0;  // revision last sent to the learner
};

}  // namespace tetrion::coordinator
