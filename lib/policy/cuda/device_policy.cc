#include "lib/policy/cuda/device_policy.h"

#include "lib/core/error.h"
#include "lib/policy/cuda/device_dreamer_policy.h"
#include "lib/policy/cuda/device_mlp_policy.h"
#include "lib/policy/cuda/device_random_policy.h"

namespace tetrion {

std::unique_ptr<DevicePolicy> MakeDevicePolicy(const cuda::Device& device,
                                               const DevicePolicyConfig& config,
                                               const EnvSpec& env) {
  if (config.network == "random") return std::make_unique<DeviceRandomPolicy>(device, config, env);
  if (config.network == "mlp") return std::make_unique<DeviceMlpPolicy>(device, config, env);
  if (config.network == "dreamer")
    return std::make_unique<DeviceDreamerPolicy>(device, config, env);
  throw Error(ExitCode::kUsage,
              "network \"" + config.network +
                  "\" does not run on a device: choose --network mlp, or leave --resident-lanes "
                  "out and let actors play");
}

}  // namespace tetrion
