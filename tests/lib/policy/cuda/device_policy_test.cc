#include "lib/policy/cuda/device_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/core/error.h"
#include "lib/envs/cuda/device_views.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

class DevicePolicyTest : public cuda::DeviceFixture {};

TEST_F(DevicePolicyTest, NetworksAreMadeByName) {
  const EnvSpec env = testing::VectorEnv();
  const auto random = MakeDevicePolicy(*device, {.network = "random", .lanes = 2}, env);
  EXPECT_EQ(random->WeightsBytes(), 0U);
  EXPECT_EQ(random->version(), 0U);
  EXPECT_EQ(random->TakeCheck(), 0U) << "a random policy has no logits";
  const auto mlp = MakeDevicePolicy(
      *device, {.network = "mlp", .lanes = 2, .expand = DeviceExpandOf(env.obs)}, env);
  EXPECT_GT(mlp->WeightsBytes(), 0U);
}

TEST_F(DevicePolicyTest, OtherNetworksAreRefusedWithTheNamesThereAre) {
  try {
    (void)MakeDevicePolicy(*device, {.network = "conv"}, testing::PlanesEnv());
    FAIL() << "made a policy of network conv";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_EQ(std::string(error.what()),
              "network \"conv\" does not run on a device: choose --network mlp, or leave "
              "--resident-lanes out and let actors play");
  }
}

}  // namespace
}  // namespace tetrion
