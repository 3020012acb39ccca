#include "services/learner/resident_parts.h"

#include <memory>

#include "lib/envs/cuda/device_views.h"
#include "lib/frame/token.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {

ResidentAgent::Parts MakeResidentParts(const RunConfig& run, const ReplayShape& shape,
                                       const cuda::Device& device,
                                       const WeightsReader::Config& weights) {
  const EnvSpec env = EnvSpecOf(run);
  // What waits on the device comes on top of what the coordinator takes workers to need.
  const auto tokens =
      static_cast<std::uint32_t>(CreditLowWater(static_cast<std::uint64_t>(run.lanes)) +
                                 static_cast<std::uint64_t>(shape.lanes));
  DeviceLanesConfig lanes = {.env = EnvConfigOf(run),
                             .token_capacity = tokens,
                             .episode_capacity = 2 * tokens,
                             .drain_episodes = static_cast<std::uint32_t>(shape.lanes)};
  lanes.env.lanes = shape.lanes;
  ResidentAgent::Parts parts;
  parts.lanes = std::make_unique<DeviceLanes>(device, lanes);
  DevicePolicyConfig policy = {.network = run.network,
                               .seed = run.seed,
                               .lanes = shape.lanes,
                               .expand = DeviceExpandOf(env.obs)};
  if (run.algo == "dreamer") {
    policy.network = "dreamer";
    policy.dreamer = ModelShapeOf(env, run.dreamer);
  }
  parts.policy = MakeDevicePolicy(device, policy, env);
  // The region is this process's own: its bell wakes no other thread of it.
  parts.weights = std::make_unique<WeightsReader>(weights, [](Bell) {});
  return parts;
}

}  // namespace tetrion::learner
