#include "lib/setup/run_setup.h"

#include "lib/wire/messages.h"

namespace tetrion {

static_assert(kMaxWorkersOfRun == wire::kMaxRings, "a run's rings fit one message");

EnvConfig EnvConfigOf(const RunConfig& run) {
  return {.name = run.env,
          .view = run.view == "auto" ? "" : run.view,
          .lanes = run.lanes,
          .seed = run.seed,
          .queue_size = run.queue_size,
          .iid_pieces = run.iid_pieces,
          .illegal_is_noop = run.illegal == "noop"};
}

EnvSpec EnvSpecOf(const RunConfig& run) {
  return MakeEnvSpec(EnvConfigOf(run));
}

RowSpec RowSpecOf(const RunConfig& run) {
  const EnvSpec spec = EnvSpecOf(run);
  return {.record_bytes = spec.obs.record_bytes,
          .lanes = static_cast<std::uint32_t>(run.lanes),
          .has_mask = spec.action.has_mask};
}

}  // namespace tetrion
