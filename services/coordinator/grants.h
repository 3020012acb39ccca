#pragma once

#include "services/coordinator/control_context.h"
#include "services/coordinator/leases.h"

namespace tetrion::coordinator {

// Whether the numbers that a member tells are possible in its run. Each Impossible function, here
// and in process_table.h, returns what is impossible, as one clause with both numbers, or an empty
// text. A member that tells an impossible number is refused with it and loses its session: nothing
// of the message is counted. Pure.

// What a report may hold, beside what the ledger knows of its token.
struct ReportLimits {
  std::uint32_t max_steps = 0;
  std::uint32_t lanes = 0;
  std::uint32_t workers = 0;        // of the session
  std::uint32_t version_limit = 0;  // policy versions are below
};
std::string ImpossibleIn(const wire::ReportBatch& batch, const ReportLimits& limits);

// Requests are numbered without gaps.
std::string ImpossibleRequest(std::uint64_t request, std::uint64_t last_request);

// The token account at the door: grants, reports, tokens given back.
//
// A handler that changes the account pushes one change and answers after its ticket; without room
// in the store it stays silent, and the member asks again. A number that the run does not allow
// ends the session that told it. Control agent only.
class Grants : private ControlPart {
 public:
  Grants(ControlContext& context, Leases& leases) : ControlPart(context), leases_(leases) {}

  void On(const wire::PeerId& peer, const wire::GrantRequest& m);
  void On(const wire::PeerId& peer, wire::ReportBatch&& m);
  void On(const wire::PeerId& peer, const wire::Abandon& m);

 private:
  Leases& leases_;
};

}  // namespace tetrion::coordinator
