// How requests and collectors end, and what memory they leave.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/episodes/batch_collector.h"
#include "tests/support/collecting.h"
#include "tests/support/single_step.h"

namespace tetrion {
namespace {

using testing::Bytes;
using testing::CollectorConfig;
using testing::FunctionParts;
using testing::RandomParts;
using testing::Request;

TEST(BatchCollectorEndTest, CloseForGivesUpWhileAPolicyIsBusyAndIsDoneWhenItReturns) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 2, 1, 20);
  std::atomic<bool> hold{true};
  std::atomic<int> held{0};
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        ++held;
        while (hold) std::this_thread::yield();
        std::fill(out.actions.begin(), out.actions.end(), 0);
        return ResultColumns::kActions;
      }));
  ASSERT_EQ(collector.Start({.episodes = 4}), StartResult::kStarted);
  while (held < 2) std::this_thread::yield();
  EXPECT_FALSE(collector.CloseFor(0));
  EXPECT_FALSE(collector.CloseFor(kNanosPerMilli));
  EXPECT_TRUE(collector.Wait(testing::kPatienceNs));  // closed: nothing more will come
  EXPECT_THROW(collector.Finish(), Error);
  EXPECT_EQ(collector.Start({.episodes = 1}), StartResult::kClosed);
  hold = false;
  EXPECT_TRUE(collector.CloseFor(testing::kPatienceNs));
  EXPECT_TRUE(collector.CloseFor(0));
}

TEST(BatchCollectorEndTest, TheLastCallOfAWorkerIsOnThePolicysThreadAndWaitedFor) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 1, 1, 5);
  std::thread::id played, ended;
  std::atomic<bool> hold{true};
  const WorkerPartsFn parts =
      FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        played = std::this_thread::get_id();
        out.actions[0] = 0;
        return ResultColumns::kActions;
      });
  BatchCollector collector(config, [&](int worker) {
    WorkerParts made = parts(worker);
    made.on_drained = [&] {
      while (hold) std::this_thread::yield();
      ended = std::this_thread::get_id();
    };
    return made;
  });
  Request(collector, {.episodes = 2});
  EXPECT_FALSE(collector.CloseFor(kNanosPerMilli));
  hold = false;
  EXPECT_TRUE(collector.CloseFor(testing::kPatienceNs));
  EXPECT_EQ(ended, played);
  EXPECT_NE(ended, std::this_thread::get_id());
}

TEST(BatchCollectorEndTest, FailedRequestsDoNotMoveTheDoubleBuffer) {
  BatchCollectorConfig config = CollectorConfig("tetris", 2, 2, 20);
  config.env.view = "flat";
  config.double_buffer = true;
  std::atomic<bool> fail{false};
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        if (fail) throw std::runtime_error("on purpose");
        std::fill(out.actions.begin(), out.actions.end(), 0);
        return ResultColumns::kActions;
      }));
  const auto before = Request(collector, {.episodes = 5});
  const auto last = Request(collector, {.episodes = 5});
  const std::vector<std::byte> held = Bytes(*last, 5);
  fail = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(Request(collector, {.episodes = 5}), std::runtime_error);
    // 160 TB: more than there are addresses.
    EXPECT_THROW(static_cast<void>(collector.Start({.episodes = 0x7FFFFFFF})), Error);
  }
  fail = false;
  const auto next = Request(collector, {.episodes = 5});
  EXPECT_NE(next.get(), last.get());
  EXPECT_TRUE(Bytes(*last, 5) == held) << "the next request overwrote the last batch";
  EXPECT_EQ(Request(collector, {.episodes = 5}).get(), last.get());
}

TEST(BatchCollectorEndTest, CloseFreesTheStorageThatNobodyHolds) {
  for (const bool by_completion : {false, true}) {
    BatchCollectorConfig config = CollectorConfig("cartpole", 2, 2, 20);
    config.double_buffer = true;
    config.by_completion = by_completion;
    BatchCollector collector(config, RandomParts(config.env));
    auto held = Request(collector, {.episodes = 5});
    const std::weak_ptr<EpisodeBatch> dropped = Request(collector, {.episodes = 5});
    EXPECT_FALSE(dropped.expired());
    collector.Close();
    EXPECT_TRUE(dropped.expired());
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(held->job_ids[4] >= 0, true);
  }
}

TEST(BatchCollectorEndTest, CloseInsideAPolicyFreesTheStorageWhenTheRequestEnds) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 0, 1, 20);
  config.double_buffer = true;
  BatchCollector* self = nullptr;
  bool close = false;
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        if (close) self->Close();
        out.actions[0] = 0;
        return ResultColumns::kActions;
      }));
  self = &collector;
  const std::weak_ptr<EpisodeBatch> dropped = Request(collector, {.episodes = 2});
  EXPECT_FALSE(dropped.expired());
  close = true;
  EXPECT_THROW(Request(collector, {.episodes = 2}), Error);
  EXPECT_TRUE(dropped.expired());
}

// A request ends in a collector that was told to close, and the collector is closed for good before
// any of the end's last instructions. Property: whichever of the two ends last frees the staging
// rows. Neither holds a lock there that the other needs.
TEST(BatchCollectorEndTest, CloseWhileARequestEndsFreesTheStagingRows) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  BatchCollectorConfig config = CollectorConfig("cartpole", 0, 1, 20);
  config.by_completion = true;
  int instructions = 0;
  // Before instruction `at` of the request's end, or not at all.
  const auto frees_when_closed = [&](int at) {
    BatchCollector* self = nullptr;
    std::weak_ptr<const void> staging;
    BatchCollector collector(
        config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
          staging = in.storage;
          self->Close();  // inside a policy it only tells
          out.actions[0] = 0;
          return ResultColumns::kActions;
        }));
    self = &collector;
    EXPECT_EQ(collector.Start({.episodes = 1}), StartResult::kStarted);
    EXPECT_TRUE(collector.Wait(testing::kPatienceNs));
    instructions = 0;
    testing::SingleStep([&] { collector.Cancel(); },
                        [&](const unsigned char*) {
                          if (instructions++ == at) collector.CloseFor(0);
                          return true;
                        });
    return staging.expired();
  };
  EXPECT_FALSE(frees_when_closed(-1));
  constexpr int kLast = 60;  // instructions, from before the look to the end
  const int all = instructions;
  for (int at = all - kLast; at < all; ++at) {
    EXPECT_TRUE(frees_when_closed(at)) << "before instruction " << at << " of " << all;
  }
}

// Counts the lanes it is asked about at once.
class CountingPolicy final : public Policy {
 public:
  explicit CountingPolicy(int& most) : most_(most) {}
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override {
    most_ = std::max(most_, in.n);
    std::fill_n(out.action, in.n, 0);
    std::fill_n(out.log_prob, in.n, 0.0F);
    return ActResult::kOk;
  }
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t) override {
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return 0; }

 private:
  int& most_;
};

TEST(BatchCollectorEndTest, CallersThreadReturnsBetweenRowsOfFewLanes) {
  for (const int workers : {0, 1}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", workers, 2000, 3);
    const EnvSpec spec = MakeEnvSpec(config.env);
    int most = 0;
    BatchCollector collector(config, [&](int) {
      return WorkerParts{.writer = MakeRecordWriter(spec.obs),
                         .policy = std::make_unique<CountingPolicy>(most)};
    });
    EXPECT_EQ(Request(collector, {.episodes = 2000})->lengths[1999], 3);
    EXPECT_EQ(most, workers == 0 ? 256 : 2000);
  }
}

}  // namespace
}  // namespace tetrion
