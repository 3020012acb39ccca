#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "services/coordinator/ledger.h"
#include "services/coordinator/run_state.h"
#include "services/coordinator/session_table.h"

namespace tetrion::coordinator {

// What /status shows, a line of metrics.jsonl holds and the summary says.
struct StatusInput {
  std::string run, env, phase;
  std::uint64_t unix_time = 0;
  std::uint64_t epoch = 0;
  const RunState& state;
  const SessionTable& sessions;
  // Of the learner whose session ended last: shown while there is none. Not stored.
  std::span<const wire::Stat> left_learner = {};
  const LedgerCounts& tokens;
};
// One line of JSON: run, env, phase, kRunFigures (lib/metrics/figures.h), actor (sums over the live
// actors' heartbeats), learner (its last heartbeat's; of one that has gone without what was true of
// its present alone).
std::string StatusJson(const StatusInput& input);

}  // namespace tetrion::coordinator
