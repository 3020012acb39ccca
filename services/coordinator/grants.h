#pragma once

#include "services/coordinator/control_context.h"
#include "services/coordinator/leases.h"

namespace tetrion::coordinator {

// The token account at the door: grants, reports, tokens given back.
//
// A handler that changes the account pushes one change and answers after its ticket; without room
// in the store it stays silent, and the member asks again. A number that the run does not allow
// ends the session that told it (services/coordinator/claims.h). Control agent only.
class Grants {
 public:
  Grants(ControlContext& context, Leases& leases);

  void On(const wire::PeerId& peer, const wire::GrantRequest& m);
  void On(const wire::PeerId& peer, const wire::ReportBatch& m);
  void On(const wire::PeerId& peer, const wire::Abandon& m);

 private:
  ControlContext& context_;
  Leases& leases_;
  RunBook& book_;
  ControlMetrics& metrics_;
  const ControlConfig& config_;
};

}  // namespace tetrion::coordinator
