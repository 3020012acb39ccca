#include "lib/collect/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "tests/support/fake_lanes.h"

namespace tetrion {
namespace {

struct NoListener final : LaneListener {
  void OnEpisodes(std::span<const EpisodeResult> episodes) override { ended += episodes.size(); }
  void OnAbandoned(std::span<const Token> tokens, const char*) override { cut += tokens.size(); }
  void OnRow(std::int64_t, std::int64_t) override {}
  std::atomic<std::uint64_t> ended{0}, cut{0};
};

struct Fixture {
  explicit Fixture(int workers)
      : pool([this](std::exception_ptr) { ++errors; }), queues(static_cast<std::size_t>(workers)) {
    for (CreditQueue& queue : queues) {
      sinks.push_back(std::make_unique<testing::VectorSink>(
          RowSpec{.record_bytes = 16, .lanes = 2, .has_mask = false}, 4));
      auto policy = std::make_unique<testing::ScriptedPolicy>();
      policies.push_back(policy.get());
      pool.Add(
          "worker",
          std::make_unique<LaneLoop>(LaneLoopConfig{}, std::make_unique<testing::CountingEnv>(2),
                                     std::make_unique<LocalDecider>(std::move(policy), nullptr, 2),
                                     queue, *sinks.back(), listener),
          [this] {
            EXPECT_FALSE(pool.Drained());
            ++last_calls;
          });
    }
  }
  void Give(std::size_t worker, std::uint64_t first, std::uint64_t count) {
    std::vector<Token> tokens;
    for (std::uint64_t i = 0; i < count; ++i) tokens.push_back({.id = first + i, .max_steps = 9});
    queues[worker].Push(tokens);
  }

  std::atomic<int> errors{0};
  std::atomic<int> last_calls{0};
  NoListener listener;
  WorkerPool pool;
  std::vector<CreditQueue> queues;
  std::vector<std::unique_ptr<testing::VectorSink>> sinks;
  std::vector<testing::ScriptedPolicy*> policies;
};

TEST(WorkerPoolTest, PlaysEveryTokenThenDrains) {
  Fixture f(3);
  for (std::size_t w = 0; w < 3; ++w) f.Give(w, 100 * w, 40);
  f.pool.Start();
  while (f.listener.ended < 3 * 38) std::this_thread::yield();  // a lane may hold back its last
  std::size_t left = 0;
  for (CreditQueue& queue : f.queues) left += queue.Drain().size();
  while (!f.pool.Drained()) std::this_thread::yield();
  EXPECT_EQ(f.last_calls, 3);
  f.pool.Stop();
  f.pool.Stop();
  EXPECT_EQ(f.listener.ended + f.listener.cut + left, 120U);
  EXPECT_EQ(f.errors, 0);
}

TEST(WorkerPoolTest, FailedWorkerCountsAsDrainedAndIsReported) {
  Fixture f(1);
  f.policies[0]->fail_from = 1;
  f.policies[0]->fail_count = 1 << 20;
  f.Give(0, 0, 100);
  f.pool.Start();
  while (f.errors == 0) std::this_thread::yield();
  while (!f.pool.Drained()) std::this_thread::yield();
  f.pool.Stop();
  EXPECT_EQ(f.errors, 1);
}

// One thread with two loops of a lane each.
struct SharedThread {
  SharedThread() {
    std::vector<std::unique_ptr<LaneLoop>> loops;
    for (int i = 0; i < 2; ++i) {
      loops.push_back(std::make_unique<LaneLoop>(
          LaneLoopConfig{.wait_timeout_ns = kNanosPerSecond},
          std::make_unique<testing::CountingEnv>(1),
          std::make_unique<LocalDecider>(std::make_unique<testing::ScriptedPolicy>(), nullptr, 1),
          queues[i], sinks[i], listener));
    }
    pool.Add("both", std::move(loops));
  }
  void Give(int loop, std::uint64_t count) {
    std::vector<Token> tokens;
    for (std::uint64_t t = 0; t < count; ++t) tokens.push_back({.id = t, .max_steps = 9});
    queues[loop].Push(tokens);
  }
  void AwaitDrained() {
    while (!pool.Drained()) std::this_thread::yield();
    pool.Stop();
  }

  NoListener listener;
  CreditQueue queues[2];
  testing::VectorSink sinks[2] = {{{.record_bytes = 16, .lanes = 1}, 1},
                                  {{.record_bytes = 16, .lanes = 1}, 1}};
  WorkerPool pool{[](std::exception_ptr) { ADD_FAILURE() << "a worker failed"; }};
};

TEST(WorkerPoolTest, LoopsOnOneThreadTakeTurnsAndDrainTogether) {
  SharedThread f;
  ASSERT_EQ(f.pool.size(), 2);
  for (int i = 0; i < 2; ++i) f.Give(i, 30);
  f.pool.Start();
  while (f.listener.ended < 2 * 29) std::this_thread::yield();
  static_cast<void>(f.queues[0].Drain());
  EXPECT_FALSE(f.pool.Drained());
  static_cast<void>(f.queues[1].Drain());
  f.AwaitDrained();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(f.pool.counters(i).rows.load(), f.sinks[i].rows.size());
}

// A loop without tokens costs its sibling one wait, not one a row.
TEST(WorkerPoolTest, StarvedLoopDoesNotHoldUpTheOtherOnItsThread) {
  SharedThread f;
  f.Give(1, 100);
  f.pool.Start();
  while (f.listener.ended < 99) std::this_thread::yield();
  for (CreditQueue& queue : f.queues) static_cast<void>(queue.Drain());
  f.AwaitDrained();
  // Some 300 rows were made meanwhile; with a wait of a second each it would not have come so far.
  const auto waited = f.pool.counters(0).wait_ns[static_cast<int>(WaitReason::kToken)].load();
  EXPECT_LT(waited, 10 * kNanosPerSecond);
  EXPECT_GT(f.pool.counters(1).rows.load(), 300U);
}

// Never has a token; counts who only looks and who would wait.
struct EmptySource final : TokenSource {
  TakeResult Take(Token&, std::int64_t timeout_ns) override {
    ++(timeout_ns > 0 ? waits : looks);
    return drains ? TakeResult::kDrain : TakeResult::kTimeout;
  }
  TakeResult State() const override { return drains ? TakeResult::kDrain : TakeResult::kToken; }
  void AcceptFence() override {}
  std::atomic<int> waits{0}, looks{0};
  std::atomic<bool> drains{false};
};

// Else the thread would spin until the end of the run.
TEST(WorkerPoolTest, LoopWaitsAgainOnceTheOtherOnItsThreadHasDrained) {
  SharedThread f;
  EmptySource starved;
  std::vector<std::unique_ptr<LaneLoop>> loops;
  for (int i = 0; i < 2; ++i) {
    loops.push_back(std::make_unique<LaneLoop>(
        LaneLoopConfig{.wait_timeout_ns = kNanosPerSecond},
        std::make_unique<testing::CountingEnv>(1),
        std::make_unique<LocalDecider>(std::make_unique<testing::ScriptedPolicy>(), nullptr, 1),
        i == 0 ? static_cast<TokenSource&>(starved) : f.queues[1], f.sinks[i], f.listener));
  }
  WorkerPool pool([](std::exception_ptr) { ADD_FAILURE() << "a worker failed"; });
  pool.Add("one", std::move(loops));
  static_cast<void>(f.queues[1].Drain());  // before its first turn
  pool.Start();
  while (starved.waits < 5 && starved.looks < 1000) std::this_thread::yield();
  EXPECT_GE(starved.waits, 5);
  starved.drains = true;
  while (!pool.Drained()) std::this_thread::yield();
  pool.Stop();
}

}  // namespace
}  // namespace tetrion
