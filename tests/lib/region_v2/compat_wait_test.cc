#include "lib/region_v2/compat_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lib/region_v2/compat_world.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;

// Records its naps instead of taking them.
class Recorder final : public CompatSleeper {
 public:
  explicit Recorder(FakeClock& clock) : clock_(clock) {}
  void Sleep(std::atomic<std::uint32_t>&, std::uint32_t, std::int64_t timeout_ns) override {
    naps_ms.push_back(timeout_ns / kNanosPerMilli);
    clock_.AdvanceNs(timeout_ns);
  }
  void Yield() override {
    ++yields;
    clock_.AdvanceNs(yield_ns);
  }

  std::vector<std::int64_t> naps_ms;
  int yields = 0;
  std::int64_t yield_ns = 0;

 private:
  FakeClock& clock_;
};

class CompatWaitTest : public ::testing::Test {
 protected:
  CompatWaitTest() {
    config_.clock = &clock_;
    config_.sleeper = &recorder_;
    config_.wait = {.spins = 3, .yields = 2, .peer_timeout_ns = kNanosPerSecond};
    mine_.beat[0] = &own_beat_;
    peers_.beat[0] = &peer_beat_;
    peers_.index[0] = &peer_index_;
  }
  // Polls of a wait before it has to rest; the wait goes on.
  static int SpinsOf(CompatWaiter& waiter) {
    int spins = 0;
    while (waiter.Spin()) ++spins;
    return spins;
  }
  CompatWaiter Make() {
    return CompatWaiter(config_, my_bell_, other_bell_, mine_, peers_, stats_);
  }

  FakeClock clock_;
  Recorder recorder_{clock_};
  CompatEndConfig config_;
  std::uint32_t own_beat_ = 0, peer_beat_ = 0, peer_index_ = 0;
  std::uint32_t doorbell_ = 0, asleep_ = 1, other_doorbell_ = 0, other_asleep_ = 0;
  CompatBell my_bell_{doorbell_, asleep_};
  CompatBell other_bell_{other_doorbell_, other_asleep_};
  CompatLifeSigns mine_, peers_;
  CompatStats stats_;
};

TEST_F(CompatWaitTest, SpinsLessWhileYieldsRunSomebodyElseAndMoreAgainWhenAnswersComeAtOnce) {
  config_.wait = {.spins = 640, .yields = 2, .peer_timeout_ns = kNanosPerSecond};
  CompatWaiter waiter = Make();
  const Deadline deadline(clock_, kNanosPerSecond);
  const auto wait_with_a_yield = [&] {
    const int spins = SpinsOf(waiter);
    EXPECT_EQ(waiter.Rest(deadline), CompatResult::kOk);
    waiter.Done();
    return spins;
  };
  EXPECT_EQ(wait_with_a_yield(), 640);
  EXPECT_EQ(wait_with_a_yield(), 640) << "nobody else ran";
  recorder_.yield_ns = 50'000;
  EXPECT_EQ(wait_with_a_yield(), 640);
  EXPECT_EQ(wait_with_a_yield(), 320);
  for (int i = 0; i < 10; ++i) wait_with_a_yield();
  EXPECT_EQ(wait_with_a_yield(), 2) << "one in 512";
  EXPECT_EQ(recorder_.naps_ms.size(), 0U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(waiter.Spin());
    waiter.Done();  // an answer after one poll
  }
  recorder_.yield_ns = 0;
  EXPECT_GE(wait_with_a_yield(), 640);
}

TEST_F(CompatWaitTest, SpinsThenYieldsThenNapsTwiceAsLongEachTime) {
  CompatWaiter waiter = Make();
  EXPECT_EQ(asleep_, 0U) << "the word of an end that died asleep is cleared";
  const Deadline deadline(clock_, 900 * kNanosPerMilli);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(waiter.Spin());
  EXPECT_FALSE(waiter.Spin());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(waiter.Rest(deadline), CompatResult::kOk);
  EXPECT_EQ(recorder_.yields, 2);
  EXPECT_EQ(asleep_, 0U);
  EXPECT_EQ(waiter.Rest(deadline), CompatResult::kOk);
  EXPECT_EQ(asleep_, 1U);
  EXPECT_TRUE(recorder_.naps_ms.empty()) << "the caller looks again before the first nap";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(waiter.Rest(deadline), CompatResult::kOk);
  EXPECT_THAT(recorder_.naps_ms, ElementsAre(1, 2, 4, 8, 16, 32, 64, 100, 100));
  EXPECT_EQ(stats_.waits, 1U);
  EXPECT_EQ(stats_.sleeps, 9U);
  waiter.Done();
  EXPECT_EQ(asleep_, 0U);
  EXPECT_TRUE(waiter.Spin()) << "the next wait starts over";
}

TEST_F(CompatWaitTest, DeadlineAndPeerTimeoutCutTheLastNap) {
  config_.wait.spins = config_.wait.yields = 0;
  CompatWaiter waiter = Make();
  const Deadline soon(clock_, 10 * kNanosPerMilli);
  CompatResult result = CompatResult::kOk;
  while (result == CompatResult::kOk) result = waiter.Rest(soon);
  EXPECT_EQ(result, CompatResult::kTimeout);
  EXPECT_THAT(recorder_.naps_ms, ElementsAre(1, 2, 4, 3));
  EXPECT_EQ(asleep_, 0U);
  const Deadline late(clock_, 60 * kNanosPerSecond);
  const std::int64_t before_ns = clock_.NowNs();
  do result = waiter.Rest(late);
  while (result == CompatResult::kOk);
  EXPECT_EQ(result, CompatResult::kPeerLost);
  EXPECT_EQ(clock_.NowNs() - before_ns, 990 * kNanosPerMilli) << "both waits count";
}

TEST_F(CompatWaitTest, BeatOrIndexOfThePeerStartsItsTimeAnew) {
  config_.wait.spins = config_.wait.yields = 0;
  for (std::uint32_t* sign : {&peer_beat_, &peer_index_}) {
    CompatWaiter waiter = Make();
    const Deadline deadline(clock_, 5 * kNanosPerSecond);
    CompatResult result = CompatResult::kOk;
    while (result == CompatResult::kOk) {
      ++*sign;
      result = waiter.Rest(deadline);
    }
    EXPECT_EQ(result, CompatResult::kTimeout);
  }
}

TEST_F(CompatWaitTest, OwnHeartbeatMovesWhileWaitingAndSkipsZero) {
  config_.wait.spins = 0;
  CompatWaiter waiter = Make();
  own_beat_ = 0xFFFFFFFE;
  const Deadline deadline(clock_, kNanosPerSecond);
  EXPECT_EQ(waiter.Rest(deadline), CompatResult::kOk);
  EXPECT_EQ(own_beat_, 0xFFFFFFFFU);
  waiter.Heartbeat();
  EXPECT_EQ(own_beat_, 1U);
}

TEST_F(CompatWaitTest, HeldBackDoorbellIsRungBeforeResting) {
  config_.wait.spins = 0;
  CompatWaiter waiter = Make();
  other_bell_.Published(true, 10, stats_);
  EXPECT_EQ(other_doorbell_, 0U);
  EXPECT_EQ(waiter.Rest(Deadline(clock_, kNanosPerSecond)), CompatResult::kOk);
  EXPECT_EQ(other_doorbell_, 1U);
}

TEST_F(CompatWaitTest, EveryResultHasAName) {
  EXPECT_STREQ(CompatResultName(CompatResult::kPeerLost), "peer_lost");
  EXPECT_STREQ(CompatResultName(CompatResult::kSeqError), "seq_error");
  EXPECT_STREQ(CompatResultName(static_cast<CompatResult>(99)), "unknown");
}

}  // namespace
}  // namespace tetrion
