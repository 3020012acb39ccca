#include "lib/episodes/batch_collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "lib/core/error.h"
#include "tests/support/collecting.h"

namespace tetrion {
namespace {

using testing::Bytes;
using testing::CollectorConfig;
using testing::FunctionParts;
using testing::RandomParts;
using testing::Request;

// One lane, one environment, no collector: the batch as the definition says it.
struct Oracle {
  explicit Oracle(const BatchCollectorConfig& config)
      : spec(MakeEnvSpec(config.env)),
        steps(config.steps),
        layout({spec.obs.record_bytes, 1, spec.action.has_mask}),
        memory(layout.row_bytes / 8 + 8),
        row(layout, reinterpret_cast<std::byte*>(memory.data())),
        policy(config.env.seed, spec.action) {
    EnvConfig env_config = config.env;
    env_config.lanes = 1;
    env = MakeVecEnv(env_config);
  }

  // Compares row `b` of `batch` with token `token`'s episode.
  void Expect(EpisodeBatch& batch, int b, std::uint64_t token) {
    const auto r = static_cast<std::size_t>(b);
    env->Reset(0, {.id = token, .max_steps = static_cast<std::uint32_t>(steps)});
    std::int32_t action = 0;
    std::vector<float> view(static_cast<std::size_t>(spec.obs.view_floats));
    const std::vector<float> zeros(view.size(), 0.0F);
    const int lane[] = {0};
    float total = 0.0F;
    for (std::uint32_t k = 0;; ++k) {
      env->Step(lane, &action, row);
      const bool last = (row.flags[0] & kIsLast) != 0;
      const std::size_t at = r * static_cast<std::size_t>(steps) + k;
      if (k > 0) {
        EXPECT_EQ(batch.rewards[at - 1], row.reward[0]);
        EXPECT_EQ(batch.dones[at - 1], (row.flags[0] & kTerminated) != 0 ? 1 : 0);
        total += row.reward[0];
      }
      spec.obs.expand(row.record, 1, spec.obs.queue_size, view.data());
      const std::byte* seen =
          last ? batch.FinalObservation(b) : batch.Observation(b, static_cast<int>(k));
      ASSERT_EQ(std::memcmp(seen, view.data(), batch.obs_bytes()), 0)
          << "job " << token << " " << k;
      if (last) {
        EXPECT_EQ(batch.lengths[r], static_cast<std::int32_t>(k));
        break;
      }
      float log_prob = 0.0F;
      const std::uint32_t lane = 0;
      const PolicyInput in = {1, row.record, row.mask, row.flags, &lane, &token, &k};
      ASSERT_EQ(policy.Act(in, {&action, &log_prob}), ActResult::kOk);
      EXPECT_EQ(batch.actions[at], action);
      EXPECT_EQ(batch.log_probs[at], log_prob);
    }
    EXPECT_EQ(batch.terminated[r], (row.flags[0] & kTerminated) != 0 ? 1 : 0);
    EXPECT_EQ(batch.truncated[r], (row.flags[0] & kTruncated) != 0 ? 1 : 0);
    EXPECT_EQ(batch.returns[r], total);
    EXPECT_EQ(batch.lines[r], static_cast<std::int32_t>(env->Episode(0).lines));
    EXPECT_EQ(batch.job_ids[r], static_cast<std::int64_t>(token));
    for (int k = batch.lengths[r]; k < steps; ++k) {
      const std::size_t at = r * static_cast<std::size_t>(steps) + static_cast<std::size_t>(k);
      ASSERT_EQ(std::memcmp(batch.Observation(b, k), zeros.data(), batch.obs_bytes()), 0);
      ASSERT_EQ(batch.rewards[at], 0.0F);
      ASSERT_EQ(batch.actions[at], 0);
      ASSERT_EQ(batch.log_probs[at], 0.0F);
      ASSERT_EQ(batch.values[at], 0.0F);
      ASSERT_EQ(batch.dones[at], 1);
    }
  }

  const EnvSpec spec;
  const int steps;
  const RowLayout layout;
  std::vector<std::uint64_t> memory;
  RowView row;
  RandomPolicy policy;
  std::unique_ptr<VecEnv> env;
};

// Everything an earlier user may have left in a batch.
void Poison(EpisodeBatch& batch) {
  const std::size_t cells = batch.rewards.size();
  std::memset(batch.observations(), 0xA5, cells * batch.obs_bytes());
  std::memset(batch.final_observations(), 0xA5, batch.obs_bytes() * batch.lengths.size());
  std::fill(batch.rewards.begin(), batch.rewards.end(), -7.0F);
  std::fill(batch.actions.begin(), batch.actions.end(), -7);
  std::fill(batch.log_probs.begin(), batch.log_probs.end(), -7.0F);
  std::fill(batch.values.begin(), batch.values.end(), -7.0F);
  std::fill(batch.dones.begin(), batch.dones.end(), std::uint8_t{0});
  std::fill(batch.lengths.begin(), batch.lengths.end(), -7);
}

TEST(BatchCollectorTest, EpisodesEqualASingleEnvironmentsInPoisonedStorage) {
  for (const char* env : {"cartpole", "tetris", "tetris-placement"}) {
    BatchCollectorConfig config = CollectorConfig(env, 2, 3, 24);
    if (env != std::string("cartpole")) config.env.view = "flat";
    BatchCollector collector(config, RandomParts(config.env));
    Oracle oracle(config);
    for (int request = 0; request < 3; ++request) {
      const auto batch = Request(collector, {.episodes = 17});
      for (int b = 0; b < 17; ++b) {
        oracle.Expect(*batch, b, static_cast<std::uint64_t>(17 * request + b));
      }
      Poison(*batch);  // it comes back dirty
    }
  }
}

TEST(BatchCollectorTest, BatchIsTheSameForAnyNumberOfWorkersAndLanes) {
  std::vector<std::byte> first;
  for (const int workers : {0, 1, 2, 5}) {
    for (const int lanes : {1, 4, 9}) {
      const BatchCollectorConfig config = CollectorConfig("tetris", workers, lanes, 40);
      BatchCollector collector(config, RandomParts(config.env));
      Request(collector, {.episodes = 3});
      const auto batch = Request(collector, {.episodes = 21});
      if (first.empty()) first = Bytes(*batch, 21);
      EXPECT_TRUE(first == Bytes(*batch, 21)) << workers << " workers, " << lanes << " lanes";
    }
  }
}

TEST(BatchCollectorTest, CompletionOrderHoldsTheSameEpisodes) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 3, 2, 200);
  BatchCollector by_job(config, RandomParts(config.env));
  config.by_completion = true;
  BatchCollector by_completion(config, RandomParts(config.env));
  Oracle oracle(config);
  for (int request = 0; request < 2; ++request) {
    const auto batch = Request(by_completion, {.episodes = 50});
    std::set<std::int64_t> jobs;
    for (int b = 0; b < 50; ++b) {
      const std::int64_t job = batch->job_ids[static_cast<std::size_t>(b)];
      jobs.insert(job);
      oracle.Expect(*batch, b, static_cast<std::uint64_t>(job));
    }
    EXPECT_EQ(jobs.size(), 50U);
    EXPECT_EQ(*jobs.begin(), 50 * request);
  }
}

TEST(BatchCollectorTest, DoubleBufferIsWrittenAgainByTheNextRequestButOne) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 2, 2, 30);
  config.double_buffer = true;
  BatchCollector collector(config, RandomParts(config.env));
  Oracle oracle(config);
  std::shared_ptr<EpisodeBatch> before, last;
  for (std::uint64_t request = 0; request < 6; ++request) {
    const auto batch = Request(collector, {.episodes = 8});
    // A slow consumer still reads the batch before; it must not have changed.
    if (last != nullptr) oracle.Expect(*last, 7, 8 * request - 1);
    oracle.Expect(*batch, 0, 8 * request);
    if (before != nullptr) {
      EXPECT_EQ(batch.get(), before.get());
    }
    before = last;
    last = batch;
  }
}

TEST(BatchCollectorTest, DoubleBufferOfALargeRequestIsFreedAfterSmallOnes) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 1, 2, 3);
  config.double_buffer = true;
  BatchCollector collector(config, RandomParts(config.env));
  std::vector<int> capacities;
  for (const int episodes : {100, 2, 100, 2, 2, 2, 2, 2, 2}) {
    capacities.push_back(Request(collector, {.episodes = episodes})->capacity());
  }
  EXPECT_EQ(capacities, (std::vector{100, 2, 100, 2, 100, 2, 100, 2, 2}));
}

TEST(BatchCollectorTest, GivenActionsArePlayedAndMinusOneTruncates) {
  for (const int workers : {0, 2}) {
    const BatchCollectorConfig config = CollectorConfig("tetris", workers, 2, 6);
    BatchCollector collector(config, RandomParts(config.env));
    const std::vector<std::int32_t> actions = {0, 1, -1, 99, 99, 99, 1, 1, 2, 3, 4, 5};
    const auto batch = Request(collector, {.episodes = 2, .actions = actions, .first_token = 40});
    EXPECT_EQ(batch->lengths[0], 2);
    EXPECT_EQ(batch->truncated[0], 1);
    EXPECT_EQ(batch->terminated[0], 0);
    EXPECT_EQ(batch->dones[1], 0);  // truncation is not done
    EXPECT_EQ(batch->dones[2], 1);
    EXPECT_EQ(batch->actions[1], 1);
    EXPECT_EQ(batch->actions[2], 0);
    EXPECT_EQ(batch->lengths[1], 6);
    EXPECT_TRUE(std::equal(actions.begin() + 6, actions.end(), batch->actions.begin() + 6));
    EXPECT_EQ(batch->job_ids[1], 41);
    EXPECT_EQ(collector.stats().next_token, 0U);  // a replay does not move the stream
  }
}

TEST(BatchCollectorTest, MasksThatThePolicySawAreInTheBatch) {
  for (const bool by_completion : {false, true}) {
    BatchCollectorConfig config = CollectorConfig("tetris-placement", 2, 3, 25);
    config.by_completion = by_completion;
    // An action is legal, and tells which masks its policy saw.
    BatchCollector collector(
        config, FunctionParts(config.env, [](const ObservedLanes& in, const LaneDecisions& out) {
          for (std::size_t i = 0; i < out.actions.size(); ++i) {
            out.actions[i] = std::countr_zero(in.masks[i]);
            out.values[i] = static_cast<float>(std::popcount(in.masks[i]));
          }
          return ResultColumns::kValues;
        }));
    EXPECT_EQ(collector.mask_actions(), 40);
    const auto batch = Request(collector, {.episodes = 12});
    for (std::size_t b = 0; b < 12; ++b) {
      for (std::size_t k = 0; k < 25; ++k) {
        const auto mask = batch->action_masks.subspan((b * 25 + k) * 40, 40);
        const auto legal = std::accumulate(mask.begin(), mask.end(), 0.0F);
        EXPECT_EQ(batch->values[b * 25 + k], legal) << b << ' ' << k;
        if (k >= static_cast<std::size_t>(batch->lengths[b])) continue;
        const auto first = std::find(mask.begin(), mask.end(), 1) - mask.begin();
        EXPECT_EQ(batch->actions[b * 25 + k], first) << b << ' ' << k;
      }
    }
  }
}

TEST(BatchCollectorTest, FailingPolicyFailsTheRequestAndTheNextOneWorks) {
  for (const int workers : {0, 1, 3}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", workers, 2, 20);
    std::atomic<bool> fail{true};
    BatchCollector collector(
        config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
          if (fail && in.steps[0] == 3) throw std::runtime_error("on purpose");
          std::fill(out.actions.begin(), out.actions.end(), 1);
          return ResultColumns::kActions;
        }));
    for (int round = 0; round < 20; ++round) {
      fail = round % 2 == 0;
      if (fail) {
        EXPECT_THROW(Request(collector, {.episodes = 9}), std::runtime_error);
        continue;
      }
      const auto batch = Request(collector, {.episodes = 9});
      for (std::size_t b = 0; b < 9; ++b) {
        EXPECT_EQ(batch->job_ids[b], 9 * round + static_cast<int>(b));
        EXPECT_GT(batch->lengths[b], 3);
      }
    }
    EXPECT_EQ(collector.stats().requests, 10U);
  }
}

TEST(BatchCollectorTest, CancelledRequestLeavesABusyPolicyBehind) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 2, 1, 20);
  std::atomic<bool> hold{true};
  std::atomic<int> held{0};
  config.double_buffer = true;
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        if (hold.exchange(false)) {
          ++held;
          while (held == 1) std::this_thread::yield();
        }
        std::fill(out.actions.begin(), out.actions.end(), 0);
        return ResultColumns::kActions;
      }));
  ASSERT_EQ(collector.Start({.episodes = 4}), StartResult::kStarted);
  while (held == 0) std::this_thread::yield();
  EXPECT_FALSE(collector.Wait(kNanosPerMilli));
  EXPECT_EQ(collector.Start({.episodes = 4}), StartResult::kBusy);
  collector.Cancel();
  const auto batch = Request(collector, {.episodes = 4});  // the other worker plays it
  held = 2;
  const auto next = Request(collector, {.episodes = 4});
  EXPECT_EQ(batch->job_ids[0], 4);
  EXPECT_EQ(next->job_ids[3], 11);
}

TEST(BatchCollectorTest, NestedRequestIsRefusedAndCloseInsideAPolicyOnlyTells) {
  for (const int workers : {0, 2}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", workers, 1, 20);
    BatchCollector* self = nullptr;
    std::atomic<int> refused{0};
    BatchCollector collector(
        config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
          if (self->Start({.episodes = 1}) == StartResult::kBusy) ++refused;
          self->Close();
          std::fill(out.actions.begin(), out.actions.end(), 0);
          return ResultColumns::kActions;
        }));
    self = &collector;
    EXPECT_THROW(Request(collector, {.episodes = 5}), Error);
    EXPECT_GE(refused, 1);
    EXPECT_EQ(collector.Start({.episodes = 1}), StartResult::kClosed);
    collector.Close();
    collector.Close();
  }
}

TEST(BatchCollectorTest, CloseFromAnotherThreadEndsARunningRequest) {
  for (int round = 0; round < 20; ++round) {
    BatchCollectorConfig config = CollectorConfig("cartpole", 2, 2, 500);
    config.by_completion = round % 2 == 0;
    std::atomic<std::uint64_t> calls{0};
    BatchCollector collector(
        config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
          ++calls;
          std::fill(out.actions.begin(), out.actions.end(), 0);
          return ResultColumns::kActions;
        }));
    std::thread closer([&] {
      while (calls < 100) std::this_thread::yield();
      collector.Close();
    });
    EXPECT_THROW(Request(collector, {.episodes = 1 << 16}), Error);
    closer.join();
  }
}

TEST(BatchCollectorTest, SlowRequesterHoldsBackTwoEpisodesALane) {
  BatchCollectorConfig config = CollectorConfig("cartpole", 2, 3, 5);
  config.by_completion = true;
  std::atomic<int> started{0};
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
        started += static_cast<int>(std::count(in.steps.begin(), in.steps.end(), 0));
        std::fill(out.actions.begin(), out.actions.end(), 0);
        return ResultColumns::kActions;
      }));
  ASSERT_EQ(collector.Start({.episodes = 100}), StartResult::kStarted);
  // Nobody copies: both workers stop at two episodes a lane.
  while (started < 2 * 3 * 2) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(started, 12);
  ASSERT_TRUE(collector.Wait(testing::kPatienceNs));
  EXPECT_EQ(collector.Finish()->lengths[99], 5);
  EXPECT_EQ(started, 100);
}

// Many small requests of changing size, some cancelled at once: nothing is lost, nothing hangs, and
// a token is never played in two rows of one batch.
TEST(BatchCollectorTest, SurvivesManySmallRequests) {
  for (const bool by_completion : {false, true}) {
    BatchCollectorConfig config = CollectorConfig("cartpole", 3, 2, 12);
    config.by_completion = by_completion;
    config.double_buffer = by_completion;
    BatchCollector collector(config, RandomParts(config.env));
    std::uint64_t next = 0;
    for (int i = 0; i < 1500; ++i) {
      const int episodes = 1 + i % 7;
      if (i % 11 == 10) {
        ASSERT_EQ(collector.Start({.episodes = episodes}), StartResult::kStarted);
        collector.Cancel();
        next += static_cast<std::uint64_t>(episodes);
        continue;
      }
      const auto batch = Request(collector, {.episodes = episodes});
      std::set<std::int64_t> jobs(batch->job_ids.begin(), batch->job_ids.begin() + episodes);
      ASSERT_EQ(jobs.size(), static_cast<std::size_t>(episodes));
      ASSERT_EQ(*jobs.begin(), static_cast<std::int64_t>(next));
      next += static_cast<std::uint64_t>(episodes);
    }
  }
}

}  // namespace
}  // namespace tetrion
