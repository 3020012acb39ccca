#include "lib/episodes/episode_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "tests/support/collecting.h"

namespace tetrion {
namespace {

using testing::CollectorConfig;
using testing::FunctionParts;
using testing::Request;

// Text of what a request throws; empty when it does not.
std::string ErrorOf(BatchCollector& collector, int episodes) {
  try {
    Request(collector, {.episodes = episodes});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EpisodePolicyTest, OutsidePolicySeesActiveLanesOnlyAndItsAnswersReachTheBatch) {
  for (const int lanes : {1, 3}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", 1, lanes, 60);
    std::size_t most = 0;
    BatchCollector collector(
        config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
          most = std::max(most, in.jobs.size());
          for (std::size_t i = 0; i < in.jobs.size(); ++i) {
            out.actions[i] = static_cast<std::int32_t>((in.jobs[i] + in.steps[i]) % 2);
            // The observation itself comes back as the value: pole angle, third of four floats.
            std::memcpy(&out.values[i], in.observations + 16 * i + 8, 4);
            out.log_probs[i] = static_cast<float>(in.jobs[i]);
          }
          return ResultColumns::kValues;
        }));
    const auto batch = Request(collector, {.episodes = 10});
    EXPECT_EQ(collector.result_columns(), 3);
    EXPECT_EQ(most, static_cast<std::size_t>(lanes));
    for (int b = 0; b < 10; ++b) {
      for (int k = 0; k < batch->lengths[static_cast<std::size_t>(b)]; ++k) {
        const auto at = static_cast<std::size_t>(b * 60 + k);
        float angle = 0.0F;
        std::memcpy(&angle, batch->Observation(b, k) + 8, 4);
        ASSERT_EQ(batch->values[at], angle);
        ASSERT_EQ(batch->log_probs[at], static_cast<float>(b));
        ASSERT_EQ(batch->actions[at], (b + k) % 2);
      }
    }
  }
}

TEST(EpisodePolicyTest, SingleLaneSeesTheRowOfTheBatchItself) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 0, 1, 5);
  std::vector<const std::byte*> seen;
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
        seen.push_back(in.observations);
        out.actions[0] = 0;
        return ResultColumns::kActions;
      }));
  const auto batch = Request(collector, {.episodes = 1});
  ASSERT_EQ(seen.size(), 5U);
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(seen[static_cast<std::size_t>(k)], batch->Observation(0, k));
  }
}

TEST(EpisodePolicyTest, ChangingTheNumberOfResultsIsAnError) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 1, 1, 9);
  BatchCollector collector(
      config, FunctionParts(config.env, [](const ObservedLanes& in, const LaneDecisions& out) {
        out.actions[0] = 0;
        return in.steps[0] < 4 ? ResultColumns::kLogProbs : ResultColumns::kActions;
      }));
  EXPECT_EQ(ErrorOf(collector, 1),
            "the policy (job 0, step 4) returned 1 arrays after having returned 2 before: return "
            "the same ones in every call");
}

TEST(EpisodePolicyTest, OnlyThePolicysThreadIsInside) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 1, 1, 3);
  BatchCollector* self = nullptr;
  bool inside = false;
  BatchCollector collector(
      config, FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
        inside = self->InsideCallback();
        out.actions[0] = 0;
        return ResultColumns::kActions;
      }));
  self = &collector;
  Request(collector, {.episodes = 1});
  EXPECT_TRUE(inside);
  EXPECT_FALSE(collector.InsideCallback());
}

// A's policy asks B, whose own worker then closes A: joining A's worker would wait for itself.
TEST(EpisodePolicyTest, APolicyThatAnotherOneWaitsForIsInsideBoth) {
  for (const int workers : {0, 1}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", workers, 1, 3);
    BatchCollector *outer = nullptr, *inner = nullptr;
    int inside = 0;
    BatchCollector b(config,
                     FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
                       inside += outer->InsideCallback() && inner->InsideCallback() ? 1 : 0;
                       outer->Close();
                       out.actions[0] = 0;
                       return ResultColumns::kActions;
                     }));
    BatchCollector a(config,
                     FunctionParts(config.env, [&](const ObservedLanes&, const LaneDecisions& out) {
                       EXPECT_FALSE(inner->InsideCallback());
                       Request(*inner, {.episodes = 1});
                       out.actions[0] = 0;
                       return ResultColumns::kActions;
                     }));
    outer = &a;
    inner = &b;
    EXPECT_EQ(ErrorOf(a, 1), "the collector was closed during the request");
    EXPECT_EQ(inside, 3);
    EXPECT_FALSE(a.InsideCallback() || b.InsideCallback());
    Request(b, {.episodes = 1});  // not inside a any more
    EXPECT_EQ(inside, 3);
  }
}

TEST(EpisodePolicyTest, KeptObservationsOutliveTheCollector) {
  for (const int lanes : {1, 3}) {
    const BatchCollectorConfig config = CollectorConfig("cartpole", 1, lanes, 4);
    std::vector<std::pair<const std::byte*, std::shared_ptr<const void>>> kept;
    {
      BatchCollector collector(
          config, FunctionParts(config.env, [&](const ObservedLanes& in, const LaneDecisions& out) {
            kept.emplace_back(in.observations, in.storage);
            std::fill(out.actions.begin(), out.actions.end(), 0);
            return ResultColumns::kActions;
          }));
      Request(collector, {.episodes = 3});
    }
    ASSERT_FALSE(kept.empty());
    for (const auto& [observations, storage] : kept) {
      float cart = 1e9F;  // the first of four floats; the sanitizers watch the read
      std::memcpy(&cart, observations, sizeof(cart));
      EXPECT_LT(std::abs(cart), 3.0F);
    }
  }
}

// Says what it was asked for; ends the request at its third observation.
class CancellingWriter final : public ObsWriter {
 public:
  CancellingWriter(BatchCollector*& collector, std::vector<ObsPlace>& seen)
      : collector_(collector), seen_(seen) {}
  std::size_t bytes() const override { return 4; }
  void Write(const std::byte*, const ObsPlace& place, std::byte*) override {
    seen_.push_back(place);
    if (seen_.size() == 3) collector_->Close();
  }

 private:
  BatchCollector*& collector_;
  std::vector<ObsPlace>& seen_;
};

TEST(EpisodePolicyTest, ObserverLooksForTheEndBetweenLanes) {
  const BatchCollectorConfig config = CollectorConfig("cartpole", 1, 64, 4);
  const EnvSpec spec = MakeEnvSpec(config.env);
  BatchCollector* self = nullptr;
  std::vector<ObsPlace> seen;
  BatchCollector collector(config, [&](int) {
    return WorkerParts{.writer = std::make_unique<CancellingWriter>(self, seen),
                       .policy = std::make_unique<RandomPolicy>(0, spec.action)};
  });
  self = &collector;
  EXPECT_NE(ErrorOf(collector, 64), "");
  collector.Close();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[2].job, 2);
  EXPECT_EQ(seen[2].step, 0);
}

TEST(EpisodePolicyTest, ActionListIsPlayedByStepAndStartsOver) {
  BatchCollectorConfig config = CollectorConfig("tetris", 2, 2, 7);
  const EnvSpec spec = MakeEnvSpec(config.env);
  BatchCollector collector(config, [&](int) {
    return WorkerParts{.writer = MakeRecordWriter(spec.obs),
                       .policy = std::make_unique<ActionListPolicy>(
                           std::vector<std::int32_t>{0, 1, 2}, spec.action)};
  });
  const auto batch = Request(collector, {.episodes = 5});
  for (std::size_t at = 0; at < 5 * 7; ++at) {
    EXPECT_EQ(batch->actions[at], static_cast<std::int32_t>(at % 7 % 3));
  }
}

TEST(EpisodePolicyTest, ActionListOutOfRangeIsRefusedByNumber) {
  const ActionSpec spec = {.count = 2};
  try {
    ActionListPolicy policy({0, 1, 2}, spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "scripted action 2 is 2: choose 0 to 1");
  }
  EXPECT_THROW(ActionListPolicy({}, spec), Error);
}

}  // namespace
}  // namespace tetrion
