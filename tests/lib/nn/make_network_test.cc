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

TEST(MakeNetworkTest, NetworksOfOurOwnArithmeticNeedNoTensorLibrary) {
  EXPECT_EQ(MakeNetwork({.name = "scorer"}, testing::AfterstatesEnv())->name(), "scorer");
  EXPECT_EQ(MakeNetwork({.name = "columns"}, testing::BoardsEnv())->name(), "columns");
  EXPECT_EQ(MakeNetwork({.name = "mlp"}, testing::VectorEnv())->name(), "mlp");
}

TEST(MakeNetworkTest, WithoutTheTensorLibraryItsNetworkIsRefusedWithWhatToDo) {
  const std::string refusal = RefusalOf({.name = "conv"}, testing::PlanesEnv());
  EXPECT_THAT(refusal, HasSubstr("network conv needs"));
  EXPECT_THAT(refusal, HasSubstr("./tetrion install wheels"));
}

TEST(MakeNetworkTest, AnUnknownNetworkIsNamed) {
  EXPECT_THAT(RefusalOf({.name = "lstm"}, testing::VectorEnv()), HasSubstr("no network \"lstm\""));
}

}  // namespace
}  // namespace tetrion
