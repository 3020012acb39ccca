#include "lib/region_v2/compat_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lib/core/log.h"
#include "tests/lib/region_v2/compat_world.h"

// What the host does when the kernel breaks the protocol, and the fallback mode.
namespace tetrion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Fallback : CompatWorld {
  explicit Fallback(int length = 1 << 30) : env(length) {
    config.stream = false;
    Start(env);
  }
  CompatResponse Send(std::uint16_t cmd, std::uint32_t payload) {
    CompatResponse response = {};
    EXPECT_EQ(kernel->Command(cmd, payload, response), CompatResult::kOk);
    return response;
  }
  CountingEnv env;
};

TEST(CompatHostTest, SkippedRepeatedOrWildSeqClosesTheStreamWithAnError) {
  for (const std::uint32_t seq : {1U, 0xFFFFFFFFU, 64U}) {
    Streaming world;
    world.Act(seq);
    EXPECT_EQ(world.host->Poll(), CompatResult::kSeqError);
    EXPECT_THAT(world.host->problem(), HasSubstr("expected 0"));
    EXPECT_EQ(world.host->stats().seq_errors, 1U);
    EXPECT_FALSE(world.host->streaming());
    EXPECT_TRUE(world.env.actions.empty());
    EXPECT_EQ(world.LastResponse().status, kCompatError);
    EXPECT_EQ(world.LastResponse().orig_cmd, kCompatEnvStep);
    EXPECT_EQ(world.LastResponse().result, kCompatErrorSeq);
  }
  Streaming world;
  ASSERT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  world.Act(0);  // again
  EXPECT_EQ(world.host->Poll(), CompatResult::kSeqError);
  EXPECT_EQ(world.env.actions.size(), 1U);
}

TEST(CompatHostTest, ClosedStreamStaysClosedUntilTheNextReset) {
  Streaming world;
  world.Act(7);
  ASSERT_EQ(world.host->Poll(), CompatResult::kSeqError);
  world.Act(0);
  EXPECT_EQ(world.host->Poll(), CompatResult::kIdle);
  EXPECT_TRUE(world.env.actions.empty());
  // The hand in the ring has moved its head: a kernel that adopts the region goes on from there.
  world.kernel.reset();
  world.StartKernel();
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  EXPECT_EQ(world.env.actions.size(), 1U) << "the queued ACTION was discarded";
  EXPECT_EQ(world.host->stats().seq_errors, 1U);
}

TEST(CompatHostTest, ActionAfterDoneAndUnknownActionAreProtocolErrors) {
  Streaming world(1);
  ASSERT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  ASSERT_EQ(world.obs.done, 1.0F);
  world.Act(1);
  EXPECT_EQ(world.host->Poll(), CompatResult::kSeqError);
  EXPECT_THAT(world.host->problem(), HasSubstr("done"));
  Streaming other;
  other.Act(0, 2);
  EXPECT_EQ(other.host->Poll(), CompatResult::kSeqError);
  EXPECT_EQ(other.LastResponse().result, kCompatErrorAction);
  EXPECT_TRUE(other.env.actions.empty());
}

TEST(CompatHostTest, EnvStepWhileStreamingIsRefusedAndTheStreamGoesOn) {
  Streaming world;
  CompatResponse response = {};
  ASSERT_EQ(world.kernel->Command(kCompatEnvStep, 1, response), CompatResult::kOk);
  EXPECT_EQ(response.status, kCompatError);
  EXPECT_EQ(response.result, kCompatErrorStreaming);
  EXPECT_TRUE(world.env.actions.empty());
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
}

TEST(CompatHostTest, EightObservationsMayBeOutstandingAndAnAckMakesRoom) {
  Fallback world;
  std::set<std::uint32_t> blobs = {world.Send(kCompatEnvReset, 0).result};
  for (int i = 0; i < 7; ++i) {
    const CompatResponse response = world.Send(kCompatEnvStep, 1);
    ASSERT_EQ(response.status, kCompatOk);
    blobs.insert(response.result);
  }
  EXPECT_EQ(blobs.size(), 8U);
  EXPECT_EQ(world.memory.heap().free_blocks, kCompatHeapBlocks - 8);
  EXPECT_EQ(world.Send(kCompatEnvStep, 1).status, kCompatBusy);
  EXPECT_EQ(world.env.actions.size(), 7U) << "a refused step must not have happened";
  const CompatResponse after = world.Send(kCompatEnvStep, *blobs.begin() << 16 | 1);
  EXPECT_EQ(after.status, kCompatOk);
  EXPECT_EQ(world.memory.heap().free_blocks, kCompatHeapBlocks - 8);
  EXPECT_EQ(world.Send(kCompatEnvStep, *blobs.begin() << 16).result, kCompatErrorAck) << "twice";
  EXPECT_EQ(world.Send(kCompatEnvStep, 0xFFFFU << 16).result, kCompatErrorAck);
  EXPECT_EQ(world.Send(kCompatEnvReset, 0).status, kCompatOk);
  EXPECT_EQ(world.memory.heap().free_blocks, kCompatHeapBlocks - 1) << "a reset recycles all";
}

TEST(CompatHostTest, FallbackStepWithoutEpisodeOrWithUnknownActionIsRefused) {
  Fallback world(1);
  EXPECT_EQ(world.Send(kCompatEnvStep, 1).result, kCompatErrorNoEpisode);
  const std::uint32_t blob = world.Send(kCompatEnvReset, 0).result;
  EXPECT_EQ(world.Send(kCompatEnvStep, 2).result, kCompatErrorAction);
  const std::uint32_t last = world.Send(kCompatEnvStep, blob << 16).result;
  EXPECT_EQ(world.Send(kCompatEnvStep, last << 16).result, kCompatErrorNoEpisode) << "done";
  EXPECT_EQ(world.env.actions.size(), 1U);
}

TEST(CompatHostTest, CommandsWaitUntilTheirResponsesHaveRoom) {
  CompatWorld world;
  CountingEnv env;
  world.Start(env);
  auto commands = CompatCommandRing::Attach(world.memory.span().data(), kCompatCommandMagic, 1024);
  for (int i = 0; i < 1023; ++i)
    ASSERT_NE(commands.Push({.cmd = kCompatPing}), CompatRingResult::kFull);
  while (world.host->Poll() == CompatResult::kOk) {
  }
  for (int i = 0; i < 10; ++i)
    ASSERT_NE(commands.Push({.cmd = kCompatPing}), CompatRingResult::kFull);
  EXPECT_EQ(world.host->Poll(), CompatResult::kIdle) << "the response ring is full";
  EXPECT_EQ(world.host->stats().commands, 1023U);
  EXPECT_EQ(world.host->stats().dropped, 0U);
  auto responses = CompatResponseRing::Attach(world.memory.span().data() + kCompatResponseRing,
                                              kCompatResponseMagic, 1024);
  EXPECT_EQ(responses.SkipToHead(), 1023);
  EXPECT_EQ(world.host->Poll(), CompatResult::kOk);
  EXPECT_EQ(world.host->stats().commands, 1033U);
}

TEST(CompatHostTest, ErrorOfAClosedStreamWaitsUntilTheResponseRingHasRoom) {
  Streaming world;
  // 1023 more then leave no index at 0, which an end believes only in time.
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  auto commands = CompatCommandRing::Attach(world.memory.span().data(), kCompatCommandMagic, 1024);
  auto responses = CompatResponseRing::Attach(world.memory.span().data() + kCompatResponseRing,
                                              kCompatResponseMagic, 1024);
  for (int i = 0; i < 1023; ++i)
    ASSERT_NE(commands.Push({.cmd = kCompatPing}), CompatRingResult::kFull);
  while (world.host->Poll() == CompatResult::kOk) {
  }
  world.Act(99);
  EXPECT_EQ(world.host->Poll(), CompatResult::kSeqError);
  EXPECT_EQ(world.host->Poll(), CompatResult::kIdle);
  EXPECT_EQ(world.LastResponse().orig_cmd, kCompatPing) << "no room for the ERROR";
  ASSERT_NE(commands.Push({.cmd = kCompatPrint}), CompatRingResult::kFull);
  EXPECT_EQ(responses.SkipToHead(), 1023);
  EXPECT_EQ(world.host->Poll(), CompatResult::kOk);
  CompatResponse response = {};
  ASSERT_EQ(responses.Pop(response), CompatRingResult::kOk);
  EXPECT_EQ(response.status, kCompatError);
  EXPECT_EQ(response.orig_cmd, kCompatEnvStep);
  EXPECT_EQ(response.result, kCompatErrorSeq);
  ASSERT_EQ(responses.Pop(response), CompatRingResult::kOk);
  EXPECT_EQ(response.orig_cmd, kCompatPrint) << "later commands are answered after it";
  EXPECT_EQ(responses.Pop(response), CompatRingResult::kEmpty) << "told once";
}

TEST(CompatHostTest, ActionStaysInItsRingWhileTheObsRingIsFull) {
  Streaming world;
  CompatRingHeader& obs_ring = world.memory.ring(kCompatObsRing);
  for (std::uint32_t seq = 0; seq < 63; ++seq) {
    world.Act(seq);
    ASSERT_EQ(world.host->Poll(), CompatResult::kOk);
  }
  world.Act(63);
  EXPECT_EQ(world.host->Poll(), CompatResult::kIdle) << "63 observations wait for the kernel";
  EXPECT_EQ(world.env.actions.size(), 63U) << "the environment must not step for nothing";
  EXPECT_EQ(world.memory.ring(kCompatActionRing).tail, 63U);
  obs_ring.tail = (obs_ring.tail + 1) % 64;
  EXPECT_EQ(world.host->Poll(), CompatResult::kOk);
  EXPECT_EQ(world.env.actions.size(), 64U);
  EXPECT_EQ(world.host->stats().dropped, 0U);
}

TEST(CompatHostTest, SeesAKernelOnlyOnceItMoves) {
  Streaming world;
  ASSERT_EQ(world.kernel->BeginReset(), CompatResult::kOk);
  world.kernel.reset();  // dies, and leaves an ENV_RESET behind
  world.host.reset();
  world.StartHost(world.env);
  EXPECT_EQ(world.host->Poll(), CompatResult::kOk);
  EXPECT_FALSE(world.host->kernel_seen()) << "what a dead kernel left is no sign of life";
  world.StartKernel();
  EXPECT_TRUE(world.host->kernel_seen());
}

TEST(CompatHostTest, PrintsGoToTheLogALineASecondWithACountOfTheRest) {
  Streaming world;
  const auto before = log::default_logger();
  ::testing::internal::CaptureStderr();
  SetUpLogging({.service = "test"});  // now: it opens the stream anew
  for (const std::uint32_t payload : {4711U, 4712U, 4713U}) {
    EXPECT_EQ(world.kernel->Print(payload), CompatResult::kOk);
  }
  world.clock.AdvanceNs(kNanosPerSecond);
  EXPECT_EQ(world.kernel->Print(4714), CompatResult::kOk);
  const std::string said = ::testing::internal::GetCapturedStderr();
  log::set_default_logger(before);
  EXPECT_THAT(said, HasSubstr("the kernel prints 4711 (0 "));
  EXPECT_THAT(said, HasSubstr("the kernel prints 4714 (2 "));
  EXPECT_THAT(said, Not(HasSubstr("4712")));
}

}  // namespace
}  // namespace tetrion
