#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "services/coordinator/ledger.h"
#include "services/coordinator/run_state.h"
#include "services/coordinator/session_table.h"

namespace tetrion::coordinator {

// A flat JSON object, written field by field. Numbers that are not finite become null.
class JsonObject {
 public:
  JsonObject& Add(std::string_view key, std::string_view text);
  JsonObject& Add(std::string_view key, const char* text) {
    return Add(key, std::string_view(text));
  }
  JsonObject& Add(std::string_view key, double value);
  JsonObject& Add(std::string_view key, std::uint64_t value);
  JsonObject& Add(std::string_view key, bool value);
  // `json` is a value already.
  JsonObject& AddJson(std::string_view key, std::string_view json);
  std::string Text() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

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
