#include "lib/replay/lease.h"

#include <utility>

#include "lib/replay/gate.h"

namespace tetrion {

void ReadLease::CloseAfter(const Event* last_read) {
  if (ReplayGate* gate = std::exchange(gate_, nullptr)) gate->CloseLease(entry_, last_read);
}

}  // namespace tetrion
