#include "tools/stream/stream_policy.h"

#include "lib/core/error.h"
#include "lib/frame/row_layout.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_checkpoint.h"
#include "lib/setup/run_policy.h"
#include "lib/setup/run_setup.h"

namespace tetrion {

std::optional<std::uint16_t> LinearStreamPolicy::Act(const CompatObs& obs, std::uint64_t) {
  if (obs.model_id != model_id_ || obs.seq == 0) {
    const auto uploaded = obs.model_id == 0.0F ? fallback_ : kernel_.Weights(obs.model_id);
    if (!uploaded) return std::nullopt;
    weights_ = *uploaded;
    model_id_ = obs.model_id;
  }
  double sum = 0;  // a product of two floats is exact in double: the same on every machine
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    sum += static_cast<double>(weights_[i]) * static_cast<double>(obs.obs[i]);
  }
  return sum > 0 ? 1 : 0;
}

std::optional<std::uint16_t> PolicyStreamPolicy::Act(const CompatObs& obs, std::uint64_t episode) {
  const std::uint8_t flags = obs.seq == 0 ? kIsFirst : 0;
  const std::uint32_t lane_id = 0;
  std::int32_t action = 0;
  float log_prob = 0;
  const ActResult result = policy_->Act({.n = 1,
                                         .records = reinterpret_cast<const std::byte*>(obs.obs),
                                         .flags = &flags,
                                         .lane_ids = &lane_id,
                                         .token_ids = &episode,
                                         .steps = &obs.seq},
                                        {.action = &action, .log_prob = &log_prob});
  if (result != ActResult::kOk) {
    throw Error(ExitCode::kConfig, "the policy's output is not finite: take another checkpoint");
  }
  return static_cast<std::uint16_t>(action);
}

std::unique_ptr<Policy> LoadCheckpointPolicy(const std::string& runs_dir, const std::string& run) {
  const RunFolder folder = RunFolder::Open(runs_dir, run);
  RunConfig config = folder.ReadConfig();
  Resolve(config);
  if (config.env != "cartpole") {
    throw Error(ExitCode::kConfig, "run " + folder.name() + " plays " + config.env +
                                       ", a streamed region carries cartpole: take another run");
  }
  return LoadRunPolicy(config, {.greedy = true}, EnvSpecOf(config), CheckpointOf(folder, false));
}

}  // namespace tetrion
