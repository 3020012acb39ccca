#include "lib/region_v2/compat_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/lib/region_v2/compat_world.h"

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

// A kernel that adopts an ACTION ring with 63 entries, streams, and finds it full at its first
// action: it looks at the tail again only where the last one it saw says full.
struct FullActionRing : CompatWorld {
  FullActionRing() {
    LayOutOrAdoptCompat(memory.span(), true);
    ring.tail = 1;
    Start(env);
    EXPECT_EQ(kernel->Reset(obs), CompatResult::kOk);
    ring.tail = 1;
    poll_host = std::exchange(sleeper.pump, [this] {
      ++naps;
      host->Heartbeat();
      EXPECT_EQ(ring.head, 0U) << "nothing fits";
    });
  }
  CompatRingHeader& ring = memory.ring(kCompatActionRing);
  CountingEnv env;
  CompatObs obs = {};
  std::function<void()> poll_host;
  int naps = 0;
};

TEST(CompatKernelTest, BacksOffWhileTheActionRingIsFullAndGoesOn) {
  FullActionRing world;
  const auto nap = world.sleeper.pump;
  world.sleeper.pump = [&] {
    nap();
    if (world.naps < 5) return;
    world.ring.tail = 0;
    world.sleeper.pump = world.poll_host;
  };
  ASSERT_EQ(world.kernel->Step(1, world.obs), CompatResult::kOk);
  EXPECT_EQ(world.naps, 5);
  EXPECT_EQ(world.obs.seq, 1U);
}

TEST(CompatKernelTest, GivesUpOnAnActionRingThatStaysFull) {
  FullActionRing world;
  EXPECT_EQ(world.kernel->Step(1, world.obs), CompatResult::kTimeout);
  EXPECT_GT(world.naps, 10) << "it naps, it does not spin";
}

// A host that takes no command and answers PINGs for ever.
struct WrongEcho : CompatWorld {
  WrongEcho() {
    LayOutOrAdoptCompat(memory.span(), true);
    StartKernel();  // adopts, hence asks for an answer before anything else
    responses = CompatResponseRing::Attach(memory.span().data() + kCompatResponseRing,
                                           kCompatResponseMagic, kCompatCommandEntries);
    sleeper.pump = [this] {
      if (sleeper.sleeps > 100'000) throw std::runtime_error("the call does not end");
      static_cast<void>(
          responses.Push({.status = kCompatOk, .orig_cmd = kCompatPing, .result = 1}));
    };
  }
  CompatResponseRing responses;
};

TEST(CompatKernelTest, OneTimeOutCoversAllWrongEchoes) {
  WrongEcho world;
  const std::int64_t before_ns = world.clock.NowNs();
  CompatObs obs;
  EXPECT_EQ(world.kernel->Reset(obs), CompatResult::kTimeout);
  EXPECT_EQ(world.clock.NowNs() - before_ns, world.config.wait.answer_timeout_ns);
}

TEST(CompatKernelTest, StopFlagEndsAWaitAmongWrongEchoes) {
  std::atomic<bool> stop{false};
  WrongEcho world;
  world.config.stop = &stop;
  world.kernel.emplace(world.memory.span(), world.config);
  const auto echo = world.sleeper.pump;
  world.sleeper.pump = [&] {
    echo();
    stop = world.sleeper.sleeps >= 3;
  };
  std::uint32_t result = 0;
  EXPECT_EQ(world.kernel->Ping(1, result), CompatResult::kStopped);
}

TEST(CompatKernelTest, OneTimeOutCoversAllWaitsOfAReset) {
  CompatWorld world;
  CountingEnv env;
  LayOutOrAdoptCompat(world.memory.span(), true);
  world.Start(env);
  const std::int64_t late_ns = world.config.wait.answer_timeout_ns * 3 / 4;
  const std::int64_t before_ns = world.clock.NowNs();
  // The echo comes late; the answer to ENV_RESET would come as late again.
  std::int64_t quiet_until_ns = before_ns + late_ns;
  world.sleeper.pump = [&] {
    world.host->Heartbeat();
    if (world.clock.NowNs() < quiet_until_ns) return;
    static_cast<void>(world.host->Poll());
    quiet_until_ns = world.clock.NowNs() + late_ns;
  };
  CompatObs obs;
  EXPECT_EQ(world.kernel->Reset(obs), CompatResult::kTimeout);
  EXPECT_EQ(world.clock.NowNs() - before_ns, world.config.wait.answer_timeout_ns);
}

// A host that publishes observations faster than any kernel could take them. The kernel's account:
// what it has discarded is bounded by its naps, of which the fake clock allows so many.
TEST(CompatKernelTest, HostThatNeverStopsPublishingCannotHoldAPoll) {
  Streaming world;
  ASSERT_EQ(world.kernel->BeginReset(), CompatResult::kOk);
  ASSERT_EQ(world.host->Poll(), CompatResult::kOk);
  for (std::size_t slot = 0; slot < 64; ++slot)
    world.memory.at<CompatObs>(kCompatObsRing + 32 + 32 * slot).seq = 7;
  world.sleeper.pump = nullptr;
  std::atomic<bool> over{false};
  CompatRingHeader& ring = world.memory.ring(kCompatObsRing);
  std::thread flood([&] {
    while (!over) {
      const std::uint32_t tail = CompatWord(ring.tail).load(std::memory_order_acquire);
      CompatWord(ring.head).store((tail + 63) % 64, std::memory_order_release);
    }
  });
  const auto sleeps_before = static_cast<std::uint64_t>(world.sleeper.sleeps);
  EXPECT_NE(world.kernel->FinishReset(world.obs), CompatResult::kOk);
  over = true;
  flood.join();
  const auto naps = static_cast<std::uint64_t>(world.sleeper.sleeps) - sleeps_before;
  EXPECT_LE(world.kernel->stats().dropped, 64 * (naps + 3));
  EXPECT_GT(world.kernel->stats().dropped, 0U);
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

TEST(CompatAdoptTest, ConnectForgetsWhatAnEarlierHostRefused) {
  Streaming world;
  ASSERT_EQ(world.kernel->Step(9, world.obs), CompatResult::kRefused);
  ASSERT_FALSE(world.kernel->problem().empty());
  ASSERT_EQ(world.kernel->Connect(kNanosPerSecond), CompatResult::kOk);
  EXPECT_EQ(world.kernel->problem(), "");
  ASSERT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  ASSERT_EQ(world.kernel->Step(9, world.obs), CompatResult::kRefused);
  world.sleeper.pump = nullptr;
  EXPECT_EQ(world.kernel->Connect(kNanosPerSecond), CompatResult::kTimeout);
  EXPECT_EQ(world.kernel->problem(), "");
}

// The kernel connects; at its first sleep a host takes the PING and is killed. `new_host_ns` later
// the next one starts.
CompatResult ConnectAcrossAKill(CompatWorld& world, CompatEnv& env, std::int64_t new_host_ns) {
  world.sleeper.pump = [&world, &env, at_ns = world.clock.NowNs() + new_host_ns,
                        taken = false]() mutable {  // also called after this has returned
    if (!std::exchange(taken, true)) {
      auto& ring = world.memory.ring(kCompatCommandRing);
      CompatWord(ring.tail).store((ring.tail + 1) % kCompatCommandEntries);
    } else if (!world.host && world.clock.NowNs() >= at_ns) {
      world.StartHost(env);
    }
    if (!world.host) return;
    static_cast<void>(world.host->Poll());
    world.host->Heartbeat();
  };
  return world.kernel->Connect(30 * kNanosPerSecond);
}

TEST(CompatAdoptTest, KernelConnectsToTheSuccessorOfAHostThatTookThePing) {
  for (const std::int64_t new_host_ns : {std::int64_t{0}, 15 * kNanosPerSecond}) {
    CompatWorld first;  // no host has ever answered
    CountingEnv env;
    first.StartKernel();
    EXPECT_EQ(ConnectAcrossAKill(first, env, new_host_ns), CompatResult::kOk) << new_host_ns;

    Streaming world;
    world.kernel.reset();
    world.host.reset();
    world.StartKernel();
    EXPECT_EQ(ConnectAcrossAKill(world, world.env, new_host_ns), CompatResult::kOk) << new_host_ns;
    EXPECT_EQ(world.kernel->Reset(world.obs), CompatResult::kOk);
  }
}

}  // namespace
}  // namespace tetrion
