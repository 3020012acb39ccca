#include "lib/nn/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

std::vector<std::string> Names(const ParameterLayout& layout) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : layout) names.push_back(info.name);
  return names;
}

TEST(MlpTest, VectorsHaveATrunkEachForPolicyAndValue) {
  const EnvSpec env = testing::VectorEnv();
  EXPECT_EQ(MlpShapeOf(env.obs), MlpShape::kSmall);
  const ParameterLayout layout = MlpLayout(env);
  EXPECT_EQ(Names(layout),
            (std::vector<std::string>{"policy.1.weight", "policy.1.bias", "policy.2.weight",
                                      "policy.2.bias", "policy.head.weight", "policy.head.bias",
                                      "value.1.weight", "value.1.bias", "value.2.weight",
                                      "value.2.bias", "value.head.weight", "value.head.bias"}));
  EXPECT_EQ(FloatsOf(layout), 2U * (64 * 4 + 64 + 64 * 64 + 64) + 3 * (64 + 1));
  EXPECT_EQ(ParameterOf(layout, "policy.head.weight").shape, (std::vector<std::int64_t>{2, 64}));
}

TEST(MlpTest, OtherViewsShareAWideTrunk) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  EXPECT_EQ(MlpShapeOf(env.obs), MlpShape::kWide);
  const ParameterLayout layout = MlpLayout(env);
  EXPECT_EQ(Names(layout),
            (std::vector<std::string>{
                "trunk.1.weight", "trunk.1.bias", "trunk.1.norm.scale", "trunk.1.norm.bias",
                "trunk.2.weight", "trunk.2.bias", "trunk.2.norm.scale", "trunk.2.norm.bias",
                "policy.head.weight", "policy.head.bias", "value.head.weight", "value.head.bias"}));
  EXPECT_EQ(FloatsOf(layout), 256U * 448 + 256 * 256 + 6 * 256 + 41 * (256 + 1));
  EXPECT_EQ(ParameterOf(layout, "trunk.1.weight").shape, (std::vector<std::int64_t>{256, 448}));
}

}  // namespace
}  // namespace tetrion
