#include "lib/collect/lane_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/frame/row_check.h"
#include "tests/support/fake_lanes.h"

namespace tetrion {
namespace {

using testing::CountingEnv;
using testing::ListTokens;
using testing::Recorder;
using testing::ScriptedPolicy;
using testing::VectorSink;

struct Fixture {
  explicit Fixture(int lanes, std::uint64_t stride = 1, bool has_mask = false)
      : sink({.record_bytes = 16, .lanes = static_cast<std::uint32_t>(lanes), .has_mask = has_mask},
             stride) {
    auto scripted = std::make_unique<ScriptedPolicy>();
    policy = scripted.get();
    loop = std::make_unique<LaneLoop>(
        LaneLoopConfig{.wait_timeout_ns = 1}, std::make_unique<CountingEnv>(lanes),
        std::make_unique<LocalDecider>(std::move(scripted), nullptr, lanes), tokens, sink,
        recorder);
  }
  // Every row checked on its own and against its predecessor.
  void CheckRows() {
    for (std::size_t i = 0; i < sink.rows.size(); ++i) {
      ASSERT_EQ(CheckRow(sink.layout(), sink.rows[i].data(), i, 3), nullptr) << "row " << i;
      if (i == 0) continue;
      ASSERT_EQ(CheckRowPair(sink.layout(), sink.rows[i - 1].data(), sink.rows[i].data()), nullptr)
          << "row " << i;
    }
  }

  ListTokens tokens;
  VectorSink sink;
  Recorder recorder;
  ScriptedPolicy* policy = nullptr;
  std::unique_ptr<LaneLoop> loop;
};

TEST(LaneLoopTest, EpisodeOfNStepsTakesNPlusOneRowsAndTheNextBeginsRightAfter) {
  Fixture f(1);
  f.tokens.Fill(2, 2);  // tokens 2 and 3: 3 and 4 steps
  for (int i = 0; i < 9; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.CheckRows();
  EXPECT_EQ(f.sink.Row(0).flags[0], kIsFirst);
  EXPECT_EQ(f.sink.Row(3).flags[0], kIsLast | kTerminated);
  EXPECT_EQ(f.sink.Row(4).flags[0], kIsFirst);
  EXPECT_EQ(f.sink.Row(8).flags[0], kIsLast | kTerminated);
  ASSERT_EQ(f.recorder.episodes.size(), 2U);
  EXPECT_EQ(f.recorder.episodes[0].token_id, 2U);
  EXPECT_EQ(f.recorder.episodes[0].length_steps, 3U);
  EXPECT_EQ(f.recorder.episodes[1].episode_return, 4.0F);
  EXPECT_EQ(f.loop->counters().env_steps.load(), 7U);
}

// Weights of version `version`, always there.
struct Published final : WeightsSource {
  bool Refresh(WeightsUser& user) override {
    return user.LoadWeights({}, version) == LoadResult::kLoaded;
  }
  std::uint32_t version = 1;
};

// Lets the fixture's loop act on published weights.
void ActOn(Published& published, Fixture& f) {
  f.loop = std::make_unique<LaneLoop>(
      LaneLoopConfig{.wait_timeout_ns = 1}, std::make_unique<CountingEnv>(1),
      std::make_unique<LocalDecider>(std::make_unique<ScriptedPolicy>(), &published, 1), f.tokens,
      f.sink, f.recorder);
}

TEST(LaneLoopTest, EpisodeIsOfTheVersionThatTookItsLastAction) {
  Published published;
  Fixture f(1);
  ActOn(published, f);
  f.tokens.Fill(2, 1);  // three steps
  for (int i = 0; i < 3; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  published.version = 2;  // before the row in which the episode ends
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.recorder.episodes.size(), 1U);
  EXPECT_EQ(f.recorder.episodes[0].policy_version, 1U);
  EXPECT_EQ(f.sink.Row(3).header->policy_version, 2U) << "the row says who would choose in it";
}

TEST(LaneLoopTest, EachChangeOfWeightsIsToldOnceWithHowFarTheOldOnesWereBehind) {
  Published published;
  Fixture f(1);
  ActOn(published, f);
  f.tokens.Fill(0, 10);
  for (const std::uint32_t version : {3U, 3U, 4U, 4U, 4U, 9U}) {
    published.version = version;
    ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  }
  EXPECT_EQ(f.recorder.behind, (std::vector<std::uint32_t>{1, 5})) << "not for the first ones";
}

TEST(LaneLoopTest, NoActionIsRecordedOnTheLastRow) {
  Fixture f(1);
  f.tokens.Fill(0, 1);  // one step
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.sink.Row(0).action[0], 1);
  EXPECT_EQ(f.sink.Row(0).log_prob[0], -0.5F);
  EXPECT_EQ(f.sink.Row(1).action[0], 0);
  EXPECT_EQ(f.sink.Row(1).log_prob[0], 0.0F);
}

TEST(LaneLoopTest, WorkerWithoutATokenPublishesWhatItHasAndWaits) {
  for (const TakeResult when_empty : {TakeResult::kTimeout, TakeResult::kIdle}) {
    Fixture f(2, /*stride=*/1000);
    f.tokens.when_empty = when_empty;
    f.tokens.Fill(0, 3);  // lanes need four within the first rows
    while (f.loop->RunOnce() == RunResult::kRow) {
    }
    EXPECT_EQ(f.sink.published, f.sink.rows.size());
    EXPECT_EQ(f.recorder.episodes.size(), when_empty == TakeResult::kIdle ? 3U : 2U);
    EXPECT_GT(f.loop->counters().wait_ns[static_cast<int>(WaitReason::kToken)].load(), 0);
    f.tokens.Fill(3, 1);
    EXPECT_EQ(f.loop->RunOnce(), RunResult::kRow);
  }
}

TEST(LaneLoopTest, EpisodesAreAnnouncedOnlyAfterTheirLastRowIsPublished) {
  Fixture f(1, /*stride=*/4);
  f.tokens.Fill(0, 10);  // token 0: rows 0 and 1
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_TRUE(f.recorder.episodes.empty());
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);  // row 3 completes the stride
  EXPECT_EQ(f.recorder.episodes.size(), 1U);
}

TEST(LaneLoopTest, FullSinkMakesTheWorkerWaitWithoutLosingARow) {
  Fixture f(1);
  f.tokens.Fill(4, 4);
  f.sink.capacity = 3;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  f.sink.capacity = 100;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.CheckRows();
}

TEST(LaneLoopTest, DrainCutsLiveLanesAndReturnsTheirTokens) {
  Fixture f(3, 1000);
  f.tokens.Fill(4, 3);  // 5, 1 and 2 steps
  for (int i = 0; i < 2; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kDrain;
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kDrained);
  const RowView last = f.sink.Row(f.sink.rows.size() - 1);
  for (int lane = 0; lane < 3; ++lane) {
    EXPECT_NE(last.flags[lane] & kIsLast, 0) << lane;
    EXPECT_EQ(last.action[lane], 0);
  }
  EXPECT_EQ(last.flags[0], kIsLast | kTruncated);  // token 4, cut
  EXPECT_EQ(last.cont[0], 1.0F);
  EXPECT_EQ(last.flags[2], kIsLast | kTerminated);  // token 6 ended by itself in the cut row
  EXPECT_EQ(f.recorder.abandoned, std::vector<std::uint64_t>{4});
  EXPECT_EQ(f.recorder.reason, "drain");
  ASSERT_EQ(f.recorder.episodes.size(), 2U);
  EXPECT_EQ(f.sink.published, f.sink.rows.size());
  for (std::size_t i = 0; i < f.sink.rows.size(); ++i) {
    EXPECT_EQ(CheckRow(f.sink.layout(), f.sink.rows[i].data(), i, 3), nullptr);
  }
}

// Weights that are always there, of a learner that may die.
struct MortalLearner final : WeightsSource {
  bool Refresh(WeightsUser&) override { return true; }
  bool LearnerGone() const override { return gone; }
  bool gone = false;
};

TEST(LaneLoopTest, LateAcknowledgementAnnouncesTheEpisodesOfItsRows) {
  Fixture f(1);
  f.sink.arrives_late = true;
  f.tokens.Fill(0, 10);  // token 0: rows 0 and 1
  for (int i = 0; i < 4; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_TRUE(f.recorder.episodes.empty());
  f.sink.published = 1;
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_TRUE(f.recorder.episodes.empty()) << "its last row is number 1";
  f.sink.published = 2;
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.recorder.episodes.size(), 1U);
}

TEST(LaneLoopTest, AcknowledgementIsSeenWhileTheWorkerWaitsForSpaceOrTokens) {
  Fixture f(1);
  f.sink.arrives_late = true;
  f.sink.capacity = 3;
  f.tokens.Fill(0, 2);  // token 0: rows 0 and 1
  for (int i = 0; i < 3; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  EXPECT_TRUE(f.recorder.episodes.empty());
  f.sink.published = 3;
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.recorder.episodes.size(), 1U);
  EXPECT_GT(f.loop->counters().wait_ns[static_cast<int>(WaitReason::kRing)].load(), 0);
  f.sink.capacity = 100;
  while (f.loop->RunOnce() == RunResult::kRow) {
  }
  EXPECT_EQ(f.recorder.episodes.size(), 1U) << "waits for a token";
  f.sink.published = f.sink.rows.size();
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.recorder.episodes.size(), 2U);
}

TEST(LaneLoopTest, DrainWaitsForTheAcknowledgementOfTheLastEpisodes) {
  Fixture f(1);
  f.sink.arrives_late = true;
  f.tokens.Fill(0, 10);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kDrain;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.sink.rows.size(), 4U) << "lanes are cut once";
  EXPECT_TRUE(f.recorder.episodes.empty());
  f.sink.published = 2;
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kDrained);
  EXPECT_EQ(f.recorder.episodes.size(), 1U);
}

TEST(LaneLoopTest, DrainWaitsForNoAcknowledgementOfADeadLearner) {
  Fixture f(1);
  MortalLearner learner;
  f.loop = std::make_unique<LaneLoop>(
      LaneLoopConfig{.wait_timeout_ns = 1}, std::make_unique<CountingEnv>(1),
      std::make_unique<LocalDecider>(std::make_unique<ScriptedPolicy>(), &learner, 1), f.tokens,
      f.sink, f.recorder);
  f.sink.arrives_late = true;
  f.tokens.Fill(0, 10);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kDrain;
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  learner.gone = true;
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kDrained);
  EXPECT_TRUE(f.recorder.episodes.empty()) << "what is not announced is played again";
}

TEST(LaneLoopTest, DrainIntoAFullSinkWaitsForALivingLearnerButNotForADeadOne) {
  ListTokens tokens;
  VectorSink sink({.record_bytes = 16, .lanes = 2, .has_mask = false}, 1);
  Recorder recorder;
  MortalLearner learner;
  LaneLoop loop({.wait_timeout_ns = 1}, std::make_unique<CountingEnv>(2),
                std::make_unique<LocalDecider>(std::make_unique<ScriptedPolicy>(), &learner, 2),
                tokens, sink, recorder);
  tokens.Fill(4, 2);
  ASSERT_EQ(loop.RunOnce(), RunResult::kRow);
  sink.capacity = 1;
  tokens.state = TakeResult::kDrain;
  EXPECT_EQ(loop.RunOnce(), RunResult::kWaiting);
  EXPECT_TRUE(recorder.abandoned.empty());
  learner.gone = true;
  EXPECT_EQ(loop.RunOnce(), RunResult::kDrained);
  EXPECT_EQ(recorder.abandoned, (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(sink.rows.size(), 1U);
}

TEST(LaneLoopTest, DrainBeforeTheFirstRowWritesNothing) {
  Fixture f(2);
  f.tokens.state = TakeResult::kDrain;
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kDrained);
  EXPECT_TRUE(f.sink.rows.empty());
}

TEST(LaneLoopTest, FenceCutsLanesDropsTheirTokensAndGoesOnWithNewOnes) {
  Fixture f(2);
  f.tokens.Fill(4, 2);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kFenced;
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.tokens.fences_accepted, 1);
  EXPECT_TRUE(f.recorder.abandoned.empty());  // their session is gone: nobody to give them to
  f.tokens.Fill(20, 2);
  ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  f.CheckRows();
  EXPECT_EQ(f.sink.Row(f.sink.rows.size() - 1).flags[0], kIsFirst);
}

TEST(LaneLoopTest, NotFinitePolicyAbandonsItsEpisodesAndTheWorkerLives) {
  Fixture f(2);
  f.tokens.Fill(3, 20);
  f.policy->fail_from = 2;
  f.policy->fail_count = 1;
  for (int i = 0; i < 6; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.recorder.abandoned, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(f.recorder.reason, "not_finite");
  EXPECT_EQ(f.loop->counters().not_finite.load(), 1U);
  f.CheckRows();
}

TEST(LaneLoopTest, PolicyThatStaysNotFiniteFailsTheWorker) {
  Fixture f(1);
  f.tokens.Fill(3, 50);
  f.policy->fail_from = 1;
  f.policy->fail_count = 100;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  try {
    (void)f.loop->RunOnce();
    FAIL() << "five failing rows must stop the worker";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find("NaN"), std::string::npos);
  }
}

TEST(LaneLoopTest, FailingRowsCountAsBrokenOnlyInARow) {
  Fixture f(1);
  f.tokens.Fill(3, 50);
  for (int time = 0; time < 3; ++time) {
    f.policy->fail_from = f.policy->calls + 2;
    f.policy->fail_count = 4;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  }
  EXPECT_EQ(f.loop->counters().not_finite.load(), 12U);
}

TEST(LaneLoopTest, LaneWithoutATokenStaysIdleWhileOthersPlay) {
  Fixture f(3, 1, /*has_mask=*/true);
  f.tokens.when_empty = TakeResult::kIdle;
  f.tokens.Fill(3, 2);  // 4 and 5 steps for three lanes
  for (int i = 0; i < 6; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kWaiting);
  ASSERT_EQ(f.sink.rows.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const RowView row = f.sink.Row(i);
    EXPECT_EQ(row.flags[2], kIsLast | kTruncated) << i;
    EXPECT_EQ(row.record[2 * 16], std::byte{0}) << i;
    EXPECT_EQ(row.action[2], 0) << i;
    EXPECT_EQ(row.mask[2], 1U) << i;
    EXPECT_EQ(row.episode_id[2], 0) << i;
  }
  EXPECT_EQ(f.sink.Row(5).flags[0], kIsLast | kTruncated);  // ended a row before, idle since
  EXPECT_EQ(f.sink.Row(5).episode_id[0], 1) << "of the episode that ended";
  EXPECT_EQ(f.sink.Row(5).flags[1], kIsLast | kTerminated);
  EXPECT_EQ(f.recorder.episodes.size(), 2U);
  EXPECT_EQ(f.loop->counters().env_steps.load(), 9U);
  f.tokens.Fill(10, 1);
  EXPECT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.sink.Row(6).flags[0], kIsFirst);
}

TEST(LaneLoopTest, PolicyThatGivesUpCutsItsEpisodesAndIsNotJudgedBroken) {
  Fixture f(2);
  f.tokens.Fill(3, 100);
  f.policy->failure = ActResult::kGiveUp;
  f.policy->fail_from = 1;
  f.policy->fail_count = 10;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(f.loop->RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.recorder.reason, "policy");
  EXPECT_EQ(f.recorder.abandoned.size(), 20U);
  EXPECT_EQ(f.loop->counters().not_finite.load(), 0U);
  f.CheckRows();
}

// The same tokens give the same episodes, whatever the number of lanes.
TEST(LaneLoopTest, EveryTokenIsPlayedOnceWhateverTheLanes) {
  for (const int lanes : {1, 2, 7, 64}) {
    Fixture f(lanes);
    f.tokens.Fill(0, 200);
    while (f.loop->RunOnce() == RunResult::kRow) {
    }
    f.tokens.state = TakeResult::kDrain;
    ASSERT_EQ(f.loop->RunOnce(), RunResult::kDrained);
    std::vector<bool> seen(200, false);
    for (const EpisodeResult& episode : f.recorder.episodes) {
      ASSERT_FALSE(seen[episode.token_id]);
      seen[episode.token_id] = true;
      EXPECT_EQ(episode.length_steps, 1 + episode.token_id % 5);
    }
    for (const std::uint64_t token : f.recorder.abandoned) {
      ASSERT_FALSE(seen[token]);
      seen[token] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 200) << lanes << " lanes";
  }
}

}  // namespace
}  // namespace tetrion
