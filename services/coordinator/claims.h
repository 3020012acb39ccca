#pragma once

#include <cstdint>
#include <string>

#include "lib/run/run_config.h"
#include "lib/wire/messages.h"
#include "services/coordinator/process_table.h"
#include "services/coordinator/session_table.h"

namespace tetrion::coordinator {

// Whether the numbers that a member tells are possible in its run. Each function returns what is
// impossible, as one clause with both numbers, or an empty text. A member that tells an impossible
// number is refused with it and loses its session: nothing of the message is counted. Pure.

// What a report may hold, beside what the ledger knows of its token.
struct ReportLimits {
  std::uint32_t max_steps = 0;
  std::uint32_t lanes = 0;
  std::uint32_t workers = 0;        // of the session
  std::uint32_t version_limit = 0;  // policy versions are below
};
std::string ImpossibleIn(const wire::ReportBatch& batch, const ReportLimits& limits);

// A process has taken at most max_steps steps for each token it was ever granted.
std::string ImpossibleSteps(std::uint64_t env_steps, const Process& process,
                            std::uint32_t max_steps);

// Requests are numbered without gaps.
std::string ImpossibleRequest(std::uint64_t request, std::uint64_t last_request);

}  // namespace tetrion::coordinator
