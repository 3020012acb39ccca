#include "lib/nn/conv.h"

#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

TEST(ConvTest, LayoutHasThreeLayersOfChannelsAndTheWideTrunkOfWhatTheyGive) {
  const EnvSpec env = testing::PlanesEnv();
  const ParameterLayout layout = ConvLayout(env);
  EXPECT_EQ(ParameterOf(layout, "conv.1.weight").shape, (std::vector<std::int64_t>{32, 2, 3, 3}));
  EXPECT_EQ(ParameterOf(layout, "conv.3.weight").shape, (std::vector<std::int64_t>{32, 32, 3, 3}));
  EXPECT_EQ(layout[6].offset, 32U * 2 * 9 + 2U * 32 * 32 * 9 + 3U * 32);
  const std::int64_t flat = 32 * 200 + env.obs.view_floats - 400;
  EXPECT_EQ(layout[6].shape, (std::vector<std::int64_t>{256, flat}));
}

TEST(ConvTest, OtherViewsAreRefusedWithWhatToChoose) {
  try {
    static_cast<void>(ConvLayout(testing::VectorEnv()));
    ADD_FAILURE() << "view vector has no planes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("--view planes"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tetrion
