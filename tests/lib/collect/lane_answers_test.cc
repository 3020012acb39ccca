// The lane loop whose rows are decided elsewhere.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/collect/lane_loop.h"
#include "lib/core/error.h"
#include "tests/support/fake_lanes.h"

namespace tetrion {
namespace {

using testing::CountingEnv;
using testing::ListTokens;
using testing::Recorder;
using testing::ScriptedAnswers;
using testing::VectorSink;

struct Fixture {
  explicit Fixture(int lanes)
      : answers(lanes),
        sink({.record_bytes = 16, .lanes = static_cast<std::uint32_t>(lanes), .has_mask = false},
             1000),
        loop(LaneLoopConfig{.wait_timeout_ns = 1}, std::make_unique<CountingEnv>(lanes),
             std::make_unique<StreamedDecider>(answers), tokens, sink, recorder) {}

  ListTokens tokens;
  ScriptedAnswers answers;
  VectorSink sink;
  Recorder recorder;
  LaneLoop loop;
};

TEST(LaneAnswersTest, EveryRowGoesOutAtOnceWithoutItsActions) {
  Fixture f(2);
  f.tokens.Fill(3, 2);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
    ASSERT_EQ(f.sink.published, i + 1);
    EXPECT_EQ(f.sink.Row(i).header->row, i);
    EXPECT_EQ(f.sink.Row(i).action[0], 0);
    EXPECT_EQ(f.sink.Row(i).log_prob[1], 0.0F);
  }
  EXPECT_EQ(f.answers.asked, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(f.loop.counters().policy_version.load(), 7U);
  EXPECT_TRUE(f.recorder.behind.empty()) << "the worker has no weights";
}

TEST(LaneAnswersTest, NextRowWaitsForTheAnswerToTheLast) {
  Fixture f(1);
  f.tokens.Fill(3, 1);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.answers.next = f.answers.after = AnswerResult::kTimeout;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.sink.rows.size(), 1U);
  f.answers.next = f.answers.after = AnswerResult::kAnswer;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.sink.rows.size(), 2U);
}

TEST(LaneAnswersTest, EpisodesAreAnnouncedWithTheVersionOfTheirLastAction) {
  Fixture f(1);
  f.tokens.Fill(0, 1);  // one step
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  ASSERT_EQ(f.recorder.episodes.size(), 1U);
  EXPECT_EQ(f.recorder.episodes[0].policy_version, 7U);
  EXPECT_EQ(f.recorder.episodes[0].length_steps, 1U);
}

TEST(LaneAnswersTest, NoRowIsMadeBeforeSomebodyAnswers) {
  Fixture f(1);
  f.tokens.Fill(0, 1);
  f.answers.absent_looks = 2;  // at first and after the wait
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  EXPECT_TRUE(f.sink.rows.empty());
  EXPECT_GT(f.loop.counters().wait_ns[static_cast<int>(WaitReason::kAnswer)].load(), 0);
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kRow);
}

TEST(LaneAnswersTest, ResetAbandonsWhatIsInPlayAndGoesOnWithFreshTokens) {
  Fixture f(2);
  f.tokens.Fill(3, 4);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.answers.next = AnswerResult::kReset;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.recorder.abandoned, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(f.recorder.reason, "reset");
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.sink.Row(2).flags[0], kIsFirst);
  EXPECT_EQ(f.sink.Row(2).header->row, 2U);  // numbers go on
  EXPECT_EQ(f.answers.asked, (std::vector<std::uint64_t>{0, 1})) << "row 1 is not asked for again";
}

TEST(LaneAnswersTest, ResetSeenBetweenRowsAbandonsToo) {
  Fixture f(1);
  f.tokens.Fill(3, 2);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.answers.look = AnswererState::kReset;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.recorder.abandoned, (std::vector<std::uint64_t>{3}));
}

TEST(LaneAnswersTest, NotFiniteAnswersAbandonAndFiveInARowFail) {
  Fixture f(1);
  f.tokens.Fill(3, 20);
  f.answers.next = f.answers.after = AnswerResult::kNotFinite;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.recorder.abandoned.size(), 4U);
  EXPECT_THROW((void)f.loop.RunOnce(), Error);
}

TEST(LaneAnswersTest, FailingAnswersCountAsBrokenOnlyInARow) {
  Fixture f(1);
  f.tokens.Fill(3, 50);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  for (int time = 0; time < 3; ++time) {
    f.answers.next = f.answers.after = AnswerResult::kNotFinite;
    for (int i = 0; i < 4; ++i) ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
    f.answers.next = f.answers.after = AnswerResult::kAnswer;
    ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  }
  EXPECT_EQ(f.loop.counters().not_finite.load(), 12U);
}

TEST(LaneAnswersTest, ImpossibleAnswerFailsTheWorkerWithItsReason) {
  Fixture f(1);
  f.tokens.Fill(3, 1);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.answers.next = AnswerResult::kBroken;
  try {
    (void)f.loop.RunOnce();
    FAIL() << "a broken stream must stop the worker";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "scripted");
  }
}

TEST(LaneAnswersTest, DrainCutsTheLanesInALastRowThatNeedsNoAnswer) {
  Fixture f(2);
  f.tokens.Fill(3, 2);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kDrain;
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kDrained);
  ASSERT_EQ(f.sink.published, 3U);
  EXPECT_EQ(f.sink.Row(2).flags[0], kIsLast | kTruncated);
  EXPECT_EQ(f.recorder.abandoned.size(), 2U);
}

TEST(LaneAnswersTest, DrainWithoutAnAnswererGivesUpAtOnceAndWithOneItWaits) {
  Fixture f(1);
  f.tokens.Fill(3, 1);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kDrain;
  f.answers.next = f.answers.after = AnswerResult::kTimeout;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  f.answers.gone = true;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kDrained);
  EXPECT_EQ(f.recorder.abandoned, (std::vector<std::uint64_t>{3}));
}

TEST(LaneAnswersTest, FencedLoopCutsItsLanesAndGoesOn) {
  Fixture f(1);
  f.tokens.Fill(3, 1);
  ASSERT_EQ(f.loop.RunOnce(), RunResult::kRow);
  f.tokens.state = TakeResult::kFenced;
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kWaiting);
  EXPECT_EQ(f.tokens.fences_accepted, 1);
  EXPECT_TRUE(f.recorder.abandoned.empty());
  f.tokens.Fill(8, 1);
  EXPECT_EQ(f.loop.RunOnce(), RunResult::kRow);
  EXPECT_EQ(f.answers.asked.back(), 1U);  // the cut row was answered too
}

}  // namespace
}  // namespace tetrion
