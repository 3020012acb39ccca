#include "lib/stream/compat_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lib/stream/compat_world.h"

// What the kernel does when the host breaks the protocol, and either end when the other falls
// silent, dies or comes back.
namespace tetrion {
namespace {

using ::testing::HasSubstr;

TEST(CompatKernelTest, HearsThatTheHostHasClosedTheStreamAndStartsAfresh) {
  Streaming world;
  ASSERT_EQ(world.kernel->Step(9, world.obs), CompatResult::kRefused);
  EXPECT_EQ(world.kernel->error_result(), kCompatErrorAction);
  EXPECT_FALSE(world.kernel->streaming());
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
}

TEST(CompatKernelTest, ObservationWithASkippedOrRepeatedSeqClosesTheStream) {
  for (const std::uint32_t wrong : {0U, 2U, 0xFFFFFFFFU}) {
    Streaming world;
    ASSERT_EQ(world.kernel->SendAction(1), CompatResult::kOk);
    ASSERT_EQ(world.host->Poll(), CompatResult::kOk);
    world.memory.at<CompatObs>(kCompatObsRing + 32 + 32).seq = wrong;
    EXPECT_EQ(world.kernel->ReceiveObs(world.obs), CompatResult::kSeqError);
    EXPECT_THAT(world.kernel->problem(), HasSubstr("expected 1"));
    EXPECT_EQ(world.kernel->stats().seq_errors, 1U);
    EXPECT_FALSE(world.kernel->streaming());
    ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
    EXPECT_EQ(world.obs.seq, 0U);
  }
}

TEST(CompatDeathTest, SilentHostIsLostAfterThePeerTimeoutAndNotBefore) {
  Streaming world;
  world.sleeper.pump = nullptr;
  const std::int64_t before_ns = world.clock.NowNs();
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kPeerLost);
  EXPECT_EQ(world.clock.NowNs() - before_ns, world.config.wait.peer_timeout_ns);
  EXPECT_EQ(world.sleeper.longest_ns, 100 * kNanosPerMilli);
  world.sleeper.pump = [&] { static_cast<void>(world.host->Poll()); };
  EXPECT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk) << "it was only slow";
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
}

TEST(CompatDeathTest, HostThatBeatsButNeverAnswersTimesOut) {
  Streaming world;
  world.sleeper.pump = [&] { world.host->Heartbeat(); };
  const std::int64_t before_ns = world.clock.NowNs();
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kTimeout);
  EXPECT_EQ(world.clock.NowNs() - before_ns, world.config.wait.answer_timeout_ns);
}

TEST(CompatDeathTest, PeerWithoutHeartbeatsIsJudgedByItsIndices) {
  Streaming world;
  std::uint32_t& tail = world.memory.ring(kCompatCommandRing).tail;
  world.sleeper.pump = [&] { tail = (tail + 1) % 1024; };
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kTimeout);
  EXPECT_EQ(world.memory.ring(kCompatObsRing).producer_beat, 0U);
}

TEST(CompatDeathTest, SilentKernelIsLostToTheHostAcrossServeCalls) {
  Streaming world;
  world.sleeper.pump = nullptr;
  std::int64_t served_ms = 0;
  CompatResult result = CompatResult::kOk;
  while (result == CompatResult::kOk && served_ms < 60'000) {
    result = world.host->Serve(100 * kNanosPerMilli);
    served_ms += 100;
    world.clock.AdvanceMs(3000);  // time spent elsewhere is not the kernel's silence
  }
  EXPECT_EQ(result, CompatResult::kPeerLost);
  EXPECT_NEAR(static_cast<double>(served_ms), 5000, 200);
}

TEST(CompatDeathTest, BeatingKernelIsNeverLost) {
  Streaming world;
  world.sleeper.pump = [&] { world.kernel->Heartbeat(); };
  EXPECT_EQ(world.host->Serve(100 * kNanosPerSecond), CompatResult::kOk);
}

TEST(CompatDeathTest, StopFlagEndsEveryWait) {
  std::atomic<bool> stop{false};
  CompatWorld other;
  other.config.stop = &stop;
  CountingEnv env;
  other.Start(env);
  other.sleeper.pump = [&] { stop = true; };
  CompatObs obs;
  EXPECT_EQ(other.host->Serve(3600 * kNanosPerSecond), CompatResult::kStopped);
  EXPECT_EQ(other.kernel->Reset(obs), CompatResult::kStopped);
}

TEST(CompatAdoptTest, NewKernelTakesOverWithoutTouchingALiveHostsIndices) {
  Streaming world;
  ASSERT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  ASSERT_EQ(world.kernel->SendAction(0), CompatResult::kOk);
  ASSERT_EQ(world.host->Poll(), CompatResult::kOk);  // OBS 2, which nobody reads
  const CompatRingHeader obs_before = world.memory.ring(kCompatObsRing);
  world.kernel.reset();
  world.StartKernel();
  EXPECT_TRUE(world.kernel->adopted());
  EXPECT_EQ(world.kernel->epoch(), 2U);
  const CompatRingHeader obs_after = world.memory.ring(kCompatObsRing);
  EXPECT_EQ(obs_after.head, obs_before.head);
  EXPECT_EQ(obs_after.tail, obs_before.head) << "skipped";
  EXPECT_EQ(world.memory.ring(kCompatActionRing).head, 2U);
  EXPECT_EQ(world.memory.ring(kCompatActionRing).epoch, 2U);
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  EXPECT_EQ(world.obs.seq, 0U);
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
}

TEST(CompatAdoptTest, AnswersToADeadKernelsCommandsAreNotTakenForOnesOwn) {
  Streaming world;
  ASSERT_EQ(world.kernel->BeginReset(), CompatResult::kOk);
  world.kernel.reset();  // dies with ENV_RESET in the ring
  world.StartKernel();
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->stats().seq_errors, 0U);
  EXPECT_EQ(world.host->stats().resets, 3U);
}

TEST(CompatAdoptTest, LateAnswerAfterATimeOutIsNotTakenForTheNextOne) {
  Streaming world;
  auto pump = std::exchange(world.sleeper.pump, nullptr);
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kPeerLost);
  world.sleeper.pump = pump;
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->stats().seq_errors, 0U);
}

TEST(CompatAdoptTest, NewHostTellsAWaitingKernelAtOnce) {
  Streaming world;
  ASSERT_EQ(world.kernel->SendAction(1), CompatResult::kOk);
  world.host.reset();
  world.StartHost(world.env);
  EXPECT_EQ(world.kernel->ReceiveObs(world.obs), CompatResult::kRefused);
  EXPECT_EQ(world.kernel->error_result(), kCompatErrorRestart);
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
}

TEST(CompatAdoptTest, ResetThatTheOldHostTookAlongIsReportedAtOnce) {
  Streaming world;
  ASSERT_EQ(world.kernel->BeginReset(), CompatResult::kOk);
  world.memory.ring(kCompatCommandRing).tail = world.memory.ring(kCompatCommandRing).head;
  world.host.reset();
  world.StartHost(world.env);
  EXPECT_EQ(world.kernel->FinishReset(world.obs), CompatResult::kRefused);
  EXPECT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
}

TEST(CompatAdoptTest, HostMayStartFirstAndServesWhatWasQueuedBeforeIt) {
  CompatWorld world;
  CountingEnv env;
  world.sleeper.pump = [&] {
    if (!world.kernel) world.StartKernel();
  };
  world.host.emplace(world.memory.span(), env, world.config, kNanosPerSecond);
  CompatObs obs;
  world.sleeper.pump = [&] { static_cast<void>(world.host->Poll()); };
  EXPECT_EQ(world.kernel->Reset(obs), CompatResult::kOk);

  CompatWorld other;
  other.StartKernel();
  ASSERT_EQ(other.kernel->BeginReset(), CompatResult::kOk);
  other.StartHost(env);
  EXPECT_EQ(other.kernel->FinishReset(obs), CompatResult::kOk);
}

TEST(CompatAdoptTest, KernelConnectsWhenTheHostComesAndGivesUpWhenNoneDoes) {
  CompatWorld world;
  CountingEnv env;
  world.StartKernel();
  const std::int64_t before_ns = world.clock.NowNs();
  EXPECT_EQ(world.kernel->Connect(20 * kNanosPerSecond), CompatResult::kTimeout);
  EXPECT_EQ(world.clock.NowNs() - before_ns, 20 * kNanosPerSecond);
  world.sleeper.pump = [&] {
    if (!world.host && world.clock.NowNs() - before_ns > 30 * kNanosPerSecond) world.StartHost(env);
    if (world.host) static_cast<void>(world.host->Poll());
  };
  EXPECT_EQ(world.kernel->Connect(20 * kNanosPerSecond), CompatResult::kOk);
}

}  // namespace
}  // namespace tetrion
