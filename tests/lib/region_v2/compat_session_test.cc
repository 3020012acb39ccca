#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/lib/region_v2/compat_world.h"

// Whole sessions of both ends in one thread: what either side sees, and the bytes left behind.
namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(CompatSessionTest, StreamedEpisodeGoesThroughAllItsSteps) {
  CompatWorld world;
  CountingEnv env(3);
  world.Start(env);
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  EXPECT_TRUE(world.kernel->streaming());
  EXPECT_TRUE(world.host->streaming());
  EXPECT_EQ(obs.seq, 0U);
  EXPECT_EQ(obs.reward, 0.0F);
  EXPECT_EQ(obs.done, 0.0F);
  EXPECT_THAT(obs.obs, ElementsAreArray(CountingEnv::Obs(0, 1)));
  for (std::uint16_t step = 1; step <= 3; ++step) {
    ASSERT_EQ(world.kernel->Step(step % 2, obs), CompatResult::kOk);
    EXPECT_EQ(obs.seq, step);
    EXPECT_EQ(obs.reward, 1.0F);
    EXPECT_EQ(obs.done, step == 3 ? 1.0F : 0.0F);
    EXPECT_THAT(obs.obs, ElementsAreArray(CountingEnv::Obs(step, 1)));
  }
  EXPECT_THAT(env.actions, ElementsAre(1, 0, 1));
  EXPECT_EQ(world.kernel->stats().steps, 3U);
  EXPECT_EQ(world.kernel->stats().episodes, 1U);
  EXPECT_EQ(world.host->stats().steps, 3U);
  EXPECT_EQ(world.host->stats().episodes, 1U);
}

TEST(CompatSessionTest, EverySeqRestartsAtZeroAndTheRingWrapsManyTimes) {
  CompatWorld world;
  CountingEnv env(37);  // no divisor of 64: episodes start at every slot
  world.Start(env);
  for (int episode = 1; episode <= 130; ++episode) {
    CompatObs obs;
    ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
    ASSERT_EQ(obs.seq, 0U);
    for (int step = 1; step <= 37; ++step) {
      ASSERT_EQ(world.kernel->Step(0, obs), CompatResult::kOk);
      ASSERT_THAT(obs.obs, ElementsAreArray(CountingEnv::Obs(step, episode)));
    }
    ASSERT_EQ(obs.done, 1.0F);
  }
  EXPECT_EQ(world.kernel->stats().episodes, 130U);
  EXPECT_EQ(world.host->stats().seq_errors, 0U);
}

TEST(CompatSessionTest, TruncationIsDoneToTheKernelAndCountedByTheHost) {
  CompatWorld world;
  CountingEnv env(2, /*truncates=*/true);
  world.Start(env);
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  ASSERT_EQ(world.kernel->Step(0, obs), CompatResult::kOk);
  ASSERT_EQ(world.kernel->Step(0, obs), CompatResult::kOk);
  EXPECT_EQ(obs.done, 1.0F);
  EXPECT_EQ(world.host->stats().truncated, 1U);
}

TEST(CompatSessionTest, LargeRegionStreamsThroughItsOwnPlace) {
  CompatWorld world(kCompatLargeRegionBytes);
  CountingEnv env;
  world.Start(env);
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  ASSERT_EQ(world.kernel->Step(1, obs), CompatResult::kOk);
  EXPECT_EQ(world.memory.ring(kCompatObsRing).magic, 0U);
  EXPECT_EQ(world.memory.ring(kCompatLargeObsRing).head, 2U);
  EXPECT_EQ(world.memory.ring(kCompatLargeActionRing).head, 1U);
}

TEST(CompatSessionTest, LargeRegionOfASmallKernelStreamsThroughTheSmallPlace) {
  CompatWorld world(kCompatLargeRegionBytes);
  LayOutOrAdoptCompat(world.memory.span().first(kCompatRegionBytes), true);
  CountingEnv env;
  world.Start(env);
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  EXPECT_EQ(world.memory.ring(kCompatObsRing).head, 1U);
  EXPECT_EQ(world.memory.ring(kCompatLargeObsRing).magic, 0U);
}

TEST(CompatSessionTest, PingPrintMetadataAndUnknownCommandsAreAnswered) {
  CompatWorld world;
  CountingEnv env;
  world.Start(env);
  std::uint32_t echo = 0;
  ASSERT_EQ(world.kernel->Ping(4711, echo), CompatResult::kOk);
  EXPECT_EQ(echo, 4711U);
  EXPECT_EQ(world.kernel->Print(42), CompatResult::kOk);
  CompatMetadata metadata = {};
  ASSERT_EQ(world.kernel->Metadata(metadata), CompatResult::kOk);
  EXPECT_EQ(metadata.obs_dim, 4U);
  EXPECT_EQ(metadata.action_count, 2U);
  EXPECT_EQ(metadata.spec_hash, 0x1122334455667788U);
  EXPECT_EQ(world.host->stats().resets, 0U) << "metadata reset the environment";
  CompatResponse response = {};
  ASSERT_EQ(world.kernel->Command(0x0777, 5, response), CompatResult::kOk);
  EXPECT_EQ(response.status, kCompatError);
  EXPECT_EQ(response.orig_cmd, 0x0777U);
  EXPECT_EQ(response.result, 0x0777U);
}

TEST(CompatSessionTest, WeightsTravelInABlobThatObservationsName) {
  CompatWorld world;
  CountingEnv env;
  world.Start(env);
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  EXPECT_EQ(obs.model_id, 0.0F);
  EXPECT_FALSE(world.kernel->Weights(obs.model_id));
  const std::array<float, 4> weights = {0.5F, -1.0F, 2.0F, 1e-3F};
  world.host->SetWeights(weights);
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  ASSERT_NE(obs.model_id, 0.0F);
  EXPECT_EQ(world.kernel->Weights(obs.model_id), weights);
  const float first_id = obs.model_id;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  EXPECT_EQ(obs.model_id, first_id) << "unchanged weights stay where they are";
  world.host->SetWeights({1, 2, 3, 4});
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  EXPECT_NE(obs.model_id, first_id);
  EXPECT_THAT(*world.kernel->Weights(obs.model_id), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(world.kernel->Weights(first_id)) << "the old blob is gone";
  for (const float nonsense : {-1.0F, 0.5F, 1e9F, std::nanf("")}) {
    EXPECT_FALSE(world.kernel->Weights(nonsense)) << nonsense;
  }
}

TEST(CompatSessionTest, WithoutStreamRingsTheEpisodeGoesThroughBlobs) {
  for (const bool kernel_streams : {false, true}) {
    CompatWorld world;
    CountingEnv env(20);
    world.config.stream = kernel_streams;
    world.StartKernel();
    world.config.stream = !kernel_streams;
    world.StartHost(env);
    world.host->SetWeights({1, 2, 3, 4});
    for (int episode = 1; episode <= 3; ++episode) {
      CompatObs obs;
      ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
      EXPECT_FALSE(world.kernel->streaming());
      EXPECT_THAT(obs.obs, ElementsAreArray(CountingEnv::Obs(0, episode)));
      EXPECT_THAT(*world.kernel->Weights(obs.model_id), ElementsAre(1, 2, 3, 4));
      for (std::uint32_t step = 1; step <= 20; ++step) {
        ASSERT_EQ(world.kernel->Step(1, obs), CompatResult::kOk);
        ASSERT_EQ(obs.seq, step);
        ASSERT_EQ(obs.reward, 1.0F);
        ASSERT_EQ(obs.done, step == 20 ? 1.0F : 0.0F);
        ASSERT_THAT(obs.obs, ElementsAreArray(CountingEnv::Obs(static_cast<int>(step), episode)));
      }
    }
    // Weights and the last observation are all that is left.
    EXPECT_EQ(world.memory.heap().free_blocks, kCompatHeapBlocks - 2);
  }
}

// The bytes of a region after one fixed session, fake clock and all. Everything that is not listed
// is zero.
TEST(CompatGoldenTest, ScriptedSessionLeavesExactlyTheseBytes) {
  CompatWorld world;
  CountingEnv env(2);
  world.clock.AdvanceNs(0x1234567000 - world.clock.NowNs());  // 0x4a90be3 us
  world.Start(env);
  world.host->SetWeights({1.0F, -1.0F, 0.5F, 2.0F});
  CompatObs obs;
  ASSERT_EQ(world.kernel->BeginReset(), CompatResult::kOk);
  ASSERT_EQ(world.host->Poll(), CompatResult::kOk);
  ASSERT_EQ(world.kernel->FinishReset(obs), CompatResult::kOk);
  for (const std::uint16_t action : {std::uint16_t{1}, std::uint16_t{0}}) {
    ASSERT_EQ(world.kernel->SendAction(action), CompatResult::kOk);
    ASSERT_EQ(world.host->Poll(), CompatResult::kOk);
    ASSERT_EQ(world.kernel->ReceiveObs(obs), CompatResult::kOk);
  }
  const std::map<std::size_t, std::vector<std::uint32_t>> golden = {
      {0x00000, {0x51DECA9E, 1, 1, 1024, 1}},
      {0x00020, {0x00000100, 1, 0x04A90BE3, 0}},
      {0x08000, {0x52535030, 1, 1, 1024, 1}},
      {0x08020, {0x01008000, 0, 0x04A90BE3, 0}},
      {0x10000, {0x444F4F52, 1, 1, 1, 0, 1, 1, 0, 1, 1, 3, 2}},
      {0x10100, {0x48454150, 1, 14080, 14079, 2, 0, 0, 0, 1}},
      {0x11000, {0x424C4F42, 0x00010001, 16, 0, 0x6BB4F427}},
      {0x11020, {0x3F800000, 0xBF800000, 0x3F000000, 0x40000000}},
      {0xFE000, {0x5354524D, 3, 3, 64, 1}},
      {0xFE020, {0, 0x3E800000, 0x3FA00000, 0x40100000, 0x40500000, 0, 0, 0x3F800000}},
      {0xFE040, {1, 0x41240000, 0x41340000, 0x41440000, 0x41540000, 0x3F800000, 0, 0x3F800000}},
      {0xFE060,
       {2, 0x41A20000, 0x41AA0000, 0x41B20000, 0x41BA0000, 0x3F800000, 0x3F800000, 0x3F800000}},
      {0xFF000, {0x5354524D, 2, 2, 64, 1}},
      {0xFF020, {0, 1, 0, 0}},
      {0xFF030, {1, 0, 1, 0}},
  };
  std::vector<std::uint32_t> expected(kCompatRegionBytes / 4);
  for (const auto& [offset, words] : golden) {
    std::copy(words.begin(), words.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(offset / 4));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(world.memory.at<std::uint32_t>(4 * i), expected[i])
        << "at 0x" << std::hex << 4 * i << ": 0x" << world.memory.at<std::uint32_t>(4 * i);
  }
}

}  // namespace
}  // namespace tetrion
