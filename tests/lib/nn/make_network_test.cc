#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "lib/nn/network.h"
#include "tests/lib/nn/test_envs.h"

// This program is linked without the tensor library.
namespace tetrion {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const NetworkConfig& config, const EnvSpec& env) {
  try {
    static_cast<void>(MakeNetwork(config, env));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(MakeNetworkTest, TheScorerNeedsNoTensorLibrary) {
  EXPECT_EQ(MakeNetwork({.name = "scorer"}, testing::AfterstatesEnv())->name(), "scorer");
}

TEST(MakeNetworkTest, WithoutTheTensorLibraryItsNetworksAreRefusedWithAWayOut) {
  EXPECT_THAT(RefusalOf({.name = "mlp"}, testing::VectorEnv()),
              HasSubstr("TETRION_ACTOR_IMAGE=actor-torch"));
  EXPECT_THAT(RefusalOf({.name = "conv"}, testing::VectorEnv()), HasSubstr("network conv needs"));
}

TEST(MakeNetworkTest, AnUnknownNetworkIsNamed) {
  EXPECT_THAT(RefusalOf({.name = "lstm"}, testing::VectorEnv()), HasSubstr("no network \"lstm\""));
}

}  // namespace
}  // namespace tetrion
