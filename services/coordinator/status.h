#pragma once

#include <cstdint>
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
  const LedgerCounts& tokens;
};
// One line of JSON: time (Unix), run, env, phase, elapsed_s, epoch, actors (count), learner_up,
// env_steps, env_steps_per_s, episodes, episodes_per_s, return_mean, return_best, lines_mean,
// length_mean (of the last 100 accounted episodes), stop_after {seconds, steps, progress}, tokens
// {...}, actor (sums of the live actors' heartbeat figures), learner (its last figures).
std::string StatusJson(const StatusInput& input);

}  // namespace tetrion::coordinator
