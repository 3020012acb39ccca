#include "lib/vector/vector_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLongNs = 30 * kNanosPerSecond;  // reached in a hang only

std::vector<int> All(int n) {
  std::vector<int> envs(static_cast<std::size_t>(n));
  std::iota(envs.begin(), envs.end(), 0);
  return envs;
}

std::vector<std::uint64_t> Seeds(int n) {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(n));
  std::iota(seeds.begin(), seeds.end(), 100);
  return seeds;
}

PoolStatus ResetAll(VectorPool& pool) {
  const std::vector<int> all = All(pool.lanes().count());
  const PoolResult sent = pool.Reset(all, Seeds(pool.lanes().count()).data());
  return sent.status == PoolStatus::kOk ? pool.ReceiveAll(kLongNs) : sent.status;
}

// A number made of everything that `steps` whole steps showed.
std::uint64_t DigestOf(int threads, int envs, int steps) {
  VectorPool pool({.obs = "flat"}, envs, threads);
  EXPECT_EQ(ResetAll(pool), PoolStatus::kOk);
  const std::vector<int> all = All(envs);
  std::vector<std::int32_t> actions(all.size());
  std::uint64_t digest = 0;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      actions[i] = static_cast<std::int32_t>((i * 3 + static_cast<std::size_t>(step) * 5) % 8);
    }
    EXPECT_EQ(pool.Send(all, actions.data()).status, PoolStatus::kOk);
    if (step % 2 == 0) pool.Help();
    EXPECT_EQ(pool.ReceiveAll(kLongNs), PoolStatus::kOk);
    const StepColumns& columns = pool.lanes().columns();
    const auto* cells = reinterpret_cast<const float*>(columns.obs.data());
    for (std::size_t i = 0; i < columns.obs.size() / sizeof(float); i += 7) {
      digest = digest * 1099511628211ULL + static_cast<std::uint64_t>(cells[i]);
    }
    for (const float reward : columns.reward) digest += static_cast<std::uint64_t>(reward * 8);
  }
  return digest;
}

TEST(VectorPool, ThreadsChangeNothingButTheTime) {
  const std::uint64_t alone = DigestOf(0, 37, 400);
  EXPECT_EQ(DigestOf(1, 37, 400), alone);
  EXPECT_EQ(DigestOf(3, 37, 400), alone);
  EXPECT_EQ(DigestOf(64, 37, 400), alone) << "more threads than environments";
}

// Property: every environment sent is received exactly once, whatever the batch and whether the
// caller helps. Each environment checks itself: its episode length counts its own steps, which the
// test counts too.
void PlayInBatches(int envs, int batch_size, int rounds) {
  VectorPool pool({.env = "cartpole", .max_steps = 1U << 30}, envs, 3);
  const std::vector<int> all = All(envs);
  ASSERT_EQ(pool.Reset(all, Seeds(envs).data()).status, PoolStatus::kOk);
  std::vector<int> batch(static_cast<std::size_t>(batch_size)), length(all.size(), -1);
  std::vector<std::int32_t> actions(batch.size());
  for (int round = 0; round < rounds; ++round) {
    if (round % 3 == 0) pool.Help();
    ASSERT_EQ(pool.Receive(batch, kLongNs), PoolStatus::kOk);
    ASSERT_EQ(std::set<int>(batch.begin(), batch.end()).size(), batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto env = static_cast<std::size_t>(batch[i]);
      const StepColumns& columns = pool.lanes().columns();
      ASSERT_EQ(columns.episode_length[env], length[env] + 1) << "environment " << env;
      length[env] = columns.terminated[env] != 0 ? -1 : length[env] + 1;
      actions[i] = (round + batch[i]) % 2;
    }
    ASSERT_EQ(pool.Send(batch, actions.data()).status, PoolStatus::kOk);
  }
  std::vector<int> rest(all.size());
  ASSERT_EQ(pool.Receive(rest, kLongNs), PoolStatus::kOk);
  std::sort(rest.begin(), rest.end());
  EXPECT_EQ(rest, all);
}

TEST(VectorPool, PartialBatchesLoseAndRepeatNothing) {
  PlayInBatches(50, 7, 2000);
}

// So many that a thread takes several chunks at once.
TEST(VectorPool, PartialBatchesOfThousandsLoseAndRepeatNothing) {
  PlayInBatches(6000, 1700, 60);
}

TEST(VectorPool, WithoutThreadsResultsComeInTheOrderOfTheirActions) {
  constexpr int kEnvs = 1500, kBatch = 64;
  VectorPool pool({.env = "cartpole"}, kEnvs, 0);
  ASSERT_EQ(ResetAll(pool), PoolStatus::kOk);
  std::vector<int> sent = All(kEnvs);
  std::reverse(sent.begin(), sent.end());
  const std::vector<std::int32_t> actions(sent.size());
  ASSERT_EQ(pool.Send(sent, actions.data()).status, PoolStatus::kOk);
  for (std::size_t first = 0; first + kBatch <= sent.size(); first += kBatch) {
    std::vector<int> batch(kBatch);
    ASSERT_EQ(pool.Receive(batch, kLongNs), PoolStatus::kOk);
    EXPECT_TRUE(std::equal(batch.begin(), batch.end(), sent.begin() + static_cast<long>(first)));
  }
}

TEST(VectorPool, RefusesWhatIsWrongAndMovesNothing) {
  VectorPool pool({.env = "cartpole"}, 3, 0);
  const std::vector<std::int32_t> actions = {0, 1, 0};
  const std::vector<int> all = All(3);
  EXPECT_EQ(pool.Send(all, actions.data()).status, PoolStatus::kNotReset);
  ASSERT_EQ(ResetAll(pool), PoolStatus::kOk);

  const std::vector<std::int32_t> wrong = {0, 1, 2};
  const PoolResult refused = pool.Send(all, wrong.data());
  EXPECT_EQ(refused.status, PoolStatus::kBadAction);
  EXPECT_EQ(refused.item, 2U);
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  for (const std::vector<int>& unknown : std::vector<std::vector<int>>{
           {0, 3}, {2, 3}, {3}, {4}, {2'000'000'000}, {kMost}, {-1}, {-1, 0}, {kLeast}}) {
    EXPECT_EQ(pool.Send(unknown, actions.data()).status, PoolStatus::kNoSuchEnv) << unknown[0];
  }
  const std::vector<int> twice = {1, 1};
  EXPECT_EQ(pool.Send(twice, actions.data()).status, PoolStatus::kTwice);
  EXPECT_EQ(pool.Reset(twice, nullptr).status, PoolStatus::kTwice);
  EXPECT_EQ(pool.lanes().columns().episode_length, (std::vector<std::int32_t>{0, 0, 0}));

  EXPECT_EQ(pool.Send(all, actions.data()).status, PoolStatus::kOk) << "all are still held";
  EXPECT_EQ(pool.Send(all, actions.data()).status, PoolStatus::kBusy) << "not yet received";
  EXPECT_EQ(pool.Send(twice, actions.data()).status, PoolStatus::kBusy) << "the first is, already";
  std::vector<int> four(4);
  EXPECT_EQ(pool.Receive(four, kLongNs), PoolStatus::kTooFew);
  EXPECT_EQ(pool.ReceiveAll(kLongNs), PoolStatus::kOk);
}

TEST(VectorPool, AWaitEndsAtItsDeadline) {
  VectorPool pool({.env = "tetris-placement", .obs = "afterstates"}, 256, 1);
  const std::vector<int> all = All(256);
  ASSERT_EQ(pool.Reset(all, Seeds(256).data()).status, PoolStatus::kOk);
  std::vector<int> batch(256);
  PoolStatus status = PoolStatus::kTimeout;
  while (status == PoolStatus::kTimeout) status = pool.Receive(batch, 1);
  EXPECT_EQ(status, PoolStatus::kOk);
}

TEST(VectorPool, CloseEndsEveryWaitAndMayBeCalledByAll) {
  for (const int threads : {0, 2}) {
    VectorPool pool({.env = "cartpole"}, 64, threads);
    ASSERT_EQ(ResetAll(pool), PoolStatus::kOk);
    std::vector<std::thread> users;
    for (int user = 0; user < 3; ++user) {
      users.emplace_back([&pool] {
        const std::vector<int> all = All(64);
        const std::vector<std::int32_t> actions(64, 1);
        std::vector<int> batch(64);
        for (;;) {
          if (pool.Send(all, actions.data()).status == PoolStatus::kClosed) return;
          if (pool.Receive(batch, kLongNs) == PoolStatus::kClosed) return;
        }
      });
    }
    std::thread closer([&pool] { pool.Close(); });
    pool.Close();
    closer.join();
    for (std::thread& user : users) user.join();
    EXPECT_EQ(pool.ReceiveAll(kLongNs), PoolStatus::kClosed);
    EXPECT_EQ(ResetAll(pool), PoolStatus::kClosed);
  }
}

TEST(VectorPool, AChildProcessIsToldAndDoesNotHang) {
  auto* pool = new VectorPool({.env = "cartpole"}, 8, 2);
  ASSERT_EQ(ResetAll(*pool), PoolStatus::kOk);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<std::int32_t> actions(8, 0);
    const bool told = pool->Send(All(8), actions.data()).status == PoolStatus::kForked &&
                      pool->ReceiveAll(kLongNs) == PoolStatus::kForked;
    pool->Close();
    VectorPool::Delete(pool);
    _exit(told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  VectorPool::Delete(pool);
}

// What a forked child makes of a pool without threads: 0 the pool is its own, 1 it was told that
// the pool is its parent's, 2 neither.
int ChildOf(VectorPool* pool) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // instead of a hang
    pool->AfterFork();
    const PoolStatus received = pool->ReceiveAll(0);
    const PoolStatus reset = pool->Reset(All(pool->lanes().count()), nullptr).status;
    pool->Close();
    VectorPool::Delete(pool);
    if (received != reset) _exit(2);
    _exit(reset == PoolStatus::kOk ? 0 : reset == PoolStatus::kForked ? 1 : 2);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(VectorPool, WithoutThreadsAChildPlaysOnUnlessTheForkMetAStep) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's own locks may be held where a fork meets another thread";
#endif
  constexpr int kEnvs = 20000;
  auto* pool = new VectorPool({.env = "cartpole"}, kEnvs, 0);
  ASSERT_EQ(ResetAll(*pool), PoolStatus::kOk);
  EXPECT_EQ(ChildOf(pool), 0);
  std::atomic<bool> is_over = false;
  std::thread user([&] {
    const std::vector<int> all = All(kEnvs);
    const std::vector<std::int32_t> actions(kEnvs, 1);
    while (!is_over) {
      ASSERT_EQ(pool->Send(all, actions.data()).status, PoolStatus::kOk);
      ASSERT_EQ(pool->ReceiveAll(kLongNs), PoolStatus::kOk);
    }
  });
  // Forks until one has met a step: each child ends, and says which it was.
  int told = 0;
  for (int i = 0; i < 1000 && told == 0; ++i) {
    told = ChildOf(pool);
    EXPECT_TRUE(told == 0 || told == 1) << told;
  }
  EXPECT_EQ(told, 1);
  is_over = true;
  user.join();
  EXPECT_EQ(ChildOf(pool), 0);
  VectorPool::Delete(pool);
}

TEST(VectorPool, CountsOutOfRangeAreErrors) {
  EXPECT_THROW(VectorPool({}, 0, 0), Error);
  EXPECT_THROW(VectorPool({}, (1 << 20) + 1, 0), Error);
  EXPECT_THROW(VectorPool({}, 4, -1), Error);
  EXPECT_THROW(VectorPool({}, 4, 257), Error);
}

TEST(VectorPool, StatesAreOfEnvironmentsAtRestAndLoadedTogetherOrNotAtAll) {
  VectorPool pool({.env = "cartpole"}, 3, 2);
  const std::vector<int> all = All(3);
  std::vector<std::vector<std::byte>> saved(3), after(3);
  std::vector<std::byte> record(pool.lanes().spec().obs.record_bytes);
  EXPECT_EQ(pool.Save(all, saved).status, PoolStatus::kNotReset);
  EXPECT_EQ(pool.Record(1, record).status, PoolStatus::kNotReset);
  ASSERT_EQ(ResetAll(pool), PoolStatus::kOk);
  ASSERT_EQ(pool.Save(all, saved).status, PoolStatus::kOk);
  const std::vector<std::int32_t> actions(3);
  ASSERT_EQ(pool.Send(all, actions.data()).status, PoolStatus::kOk);
  EXPECT_EQ(pool.Save(all, after).status, PoolStatus::kBusy);
  EXPECT_EQ(pool.Record(1, record).status, PoolStatus::kBusy);
  EXPECT_EQ(pool.Record(3, record).status, PoolStatus::kNoSuchEnv);
  std::vector<std::span<const std::byte>> states(saved.begin(), saved.end());
  EXPECT_EQ(pool.Load(all, states).status, PoolStatus::kBusy);
  ASSERT_EQ(pool.ReceiveAll(kLongNs), PoolStatus::kOk);
  ASSERT_EQ(pool.Save(all, after).status, PoolStatus::kOk);
  EXPECT_NE(after, saved);
  ASSERT_EQ(pool.Record(1, record).status, PoolStatus::kOk);
  EXPECT_EQ(std::memcmp(record.data(), pool.lanes().record(1), record.size()), 0);
  states[2] = states[2].first(8);
  const PoolResult refused = pool.Load(all, states);
  EXPECT_EQ(refused.status, PoolStatus::kBadState);
  EXPECT_EQ(refused.item, 2U);
  std::vector<std::vector<std::byte>> unchanged(3);
  ASSERT_EQ(pool.Save(all, unchanged).status, PoolStatus::kOk);
  EXPECT_EQ(unchanged, after);
  states[2] = saved[2];
  EXPECT_EQ(pool.Load(all, states).status, PoolStatus::kOk);
  ASSERT_EQ(pool.Save(all, after).status, PoolStatus::kOk);
  EXPECT_EQ(after, saved);
  VectorPool fresh({.env = "cartpole"}, 3, 0);  // whose environments were never reset
  ASSERT_EQ(fresh.Load(all, states).status, PoolStatus::kOk);
  EXPECT_EQ(fresh.Send(all, actions.data()).status, PoolStatus::kOk) << "they play on";
}

}  // namespace
}  // namespace tetrion
