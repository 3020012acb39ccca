#include "lib/nn/cuda/device_mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lib/nn/cuda/mlp_plan.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/nn/cuda/mlp_reference.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

// LAUNCHES in tools/kernel_resources.py.
TEST(MlpPlanTest, ALaunchAsksForWhatTheTableOfKernelsSays) {
  EXPECT_EQ((MlpPlan<256, 32>::kThreads), 128U);
  EXPECT_EQ((MlpPlan<256, 32>::kSharedBytes), 41472U);
  EXPECT_EQ((MlpPlan<256, 8>::kThreads), 128U);
  EXPECT_EQ((MlpPlan<256, 8>::kSharedBytes), 13824U);
  EXPECT_EQ((MlpPlan<64, 32>::kThreads), 64U);
  EXPECT_EQ((MlpPlan<64, 32>::kSharedBytes), 13824U);
  EXPECT_EQ((MlpPlan<64, 8>::kThreads), 64U);
  EXPECT_EQ((MlpPlan<64, 8>::kSharedBytes), 4608U);
}

using BlockLanes = DeviceMlp::BlockLanes;

class DeviceMlpTest : public cuda::DeviceFixture {
 protected:
  std::vector<float> Logits(const DeviceMlp& network, const EnvSpec& env,
                            const std::vector<float>& view, int n) {
    const cuda::DeviceBuffer views = Upload(view);
    const cuda::DeviceBuffer logits(
        *device, static_cast<std::size_t>(n * env.action.count) * sizeof(float), "logits");
    network.Logits(views.data<float>(), n, logits.data<float>(), *stream);
    return Download<float>(logits);
  }

  // Compares with the formula for n states of noise.
  void ExpectLogits(const DeviceMlp& network, const EnvSpec& env,
                    const std::vector<float>& parameters, int n) {
    const auto floats = static_cast<std::size_t>(env.obs.view_floats);
    const std::vector<float> view = testing::Noise(static_cast<std::size_t>(n) * floats, 3);
    const std::vector<float> logits = Logits(network, env, view, n);
    const testing::MlpReference reference(env, parameters);
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(n); ++lane) {
      const auto expected = reference.Logits(std::span(view).subspan(lane * floats, floats));
      for (std::size_t a = 0; a < expected.size(); ++a) {
        EXPECT_NEAR(logits[a * static_cast<std::size_t>(n) + lane], expected[a], 2e-5)
            << "lane " << lane << " of " << n << ", action " << a;
      }
    }
  }
};

// Initial weights and noise on them, so that every logit depends on every input.
std::vector<float> Parameters(const EnvSpec& env, std::uint64_t seed) {
  const ParameterLayout layout = MlpLayout(env);
  std::vector<float> values(FloatsOf(layout));
  FillInitial(layout, seed, values);
  const std::vector<float> noise = testing::Noise(values.size(), seed);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.05F * noise[i];
  return values;
}

std::span<const std::byte> Blob(const std::vector<float>& parameters) {
  return std::as_bytes(std::span(parameters));
}

TEST_F(DeviceMlpTest, SmallShapeEqualsItsFormula) {
  const EnvSpec env = testing::VectorEnv();
  const std::vector<float> parameters = Parameters(env, 5);
  for (const BlockLanes lanes : {BlockLanes::k8, BlockLanes::k32}) {
    DeviceMlp network(*device, env, 1, lanes);
    network.Load(Blob(parameters), 1, *stream);
    for (const int n : {1, 8, 33}) ExpectLogits(network, env, parameters, n);
  }
}

TEST_F(DeviceMlpTest, WideShapeEqualsItsFormula) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  const std::vector<float> parameters = Parameters(env, 6);
  for (const BlockLanes lanes : {BlockLanes::k8, BlockLanes::k32}) {
    DeviceMlp network(*device, env, 1, lanes);
    network.Load(Blob(parameters), 1, *stream);
    ExpectLogits(network, env, parameters, lanes == BlockLanes::k8 ? 9 : 33);
  }
}

TEST_F(DeviceMlpTest, InputsNeedNotFillAChunk) {
  const EnvSpec env = testing::EnvWithView<37>("odd", 3, false);
  const std::vector<float> parameters = Parameters(env, 7);
  DeviceMlp network(*device, env, 1, BlockLanes::k8);
  network.Load(Blob(parameters), 1, *stream);
  ExpectLogits(network, env, parameters, 3);
}

TEST_F(DeviceMlpTest, BeginsWithTheInitialWeightsOfItsSeed) {
  const EnvSpec env = testing::VectorEnv();
  const DeviceMlp network(*device, env, 9, BlockLanes::k8);
  std::vector<float> parameters(FloatsOf(MlpLayout(env)));
  EXPECT_EQ(network.WeightsBytes(), parameters.size() * sizeof(float));
  EXPECT_EQ(network.parameters().version(), 0U);
  FillInitial(MlpLayout(env), 9, parameters);
  ExpectLogits(network, env, parameters, 2);
}

TEST_F(DeviceMlpTest, ALanesLogitsDoNotDependOnTheOthers) {
  const EnvSpec env = testing::VectorEnv();
  const std::vector<float> view = testing::Noise(20 * 4, 3);
  const DeviceMlp few(*device, env, 9, BlockLanes::k8), many(*device, env, 9, BlockLanes::k32);
  const std::vector<float> together = Logits(few, env, view, 20);
  EXPECT_EQ(Logits(many, env, view, 20), together);
  const std::vector<float> alone = Logits(few, env, {view.begin() + 19 * 4, view.end()}, 1);
  EXPECT_EQ(alone[0], together[19]);
  EXPECT_EQ(alone[1], together[39]);
}

TEST_F(DeviceMlpTest, NotFiniteInputsStayInTheirLane) {
  const EnvSpec env = testing::EnvWithView<37>("odd", 2, false);
  const DeviceMlp network(*device, env, 9, BlockLanes::k8);
  std::vector<float> view = testing::Noise(3 * 37, 3);
  const std::vector<float> before = Logits(network, env, view, 3);
  view[37 + 5] = std::nanf("");
  const std::vector<float> after = Logits(network, env, view, 3);
  for (const std::size_t a : {0U, 1U}) {
    EXPECT_EQ(after[a * 3], before[a * 3]);
    EXPECT_TRUE(std::isnan(after[a * 3 + 1]));
    EXPECT_EQ(after[a * 3 + 2], before[a * 3 + 2]);
  }
}

TEST_F(DeviceMlpTest, SmallNumbersOfLanesSpreadOverTheDevice) {
  EXPECT_EQ(DeviceMlp::BlockLanesFor(1), BlockLanes::k8);
  EXPECT_EQ(DeviceMlp::BlockLanesFor(65536), BlockLanes::k32);
}

}  // namespace
}  // namespace tetrion
