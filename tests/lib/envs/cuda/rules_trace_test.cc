#include "lib/envs/cuda/rules_trace.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

// The trace plays what the environment plays: same tokens, same draws, same states.
void ExpectTraceFollowsTheEnv(const TraceRun& run, const char* name) {
  testing::RowedEnv rows({.name = name,
                          .seed = run.seed,
                          .queue_size = run.queue_size,
                          .iid_pieces = run.iid_pieces,
                          .illegal_is_noop = true});
  const int lane = 2;
  std::uint64_t token = lane;
  std::uint32_t episodes = 0, lines = 0;
  rows.env->Reset(0, {token, 0, 1U << 30});
  rows.StepAll();
  for (int i = 0; i < run.steps; ++i) {
    const PhiloxBlock draw =
        PhiloxDraw(run.seed, token, rows.env->Episode(0).length_steps, PhiloxPurpose::kActions);
    rows.actions[0] = static_cast<std::int32_t>(
        BoundedDraw(draw.word[0], static_cast<std::uint32_t>(rows.env->spec().action.count)));
    rows.StepAll();
    if ((rows.row.flags[0] & kIsLast) == 0) continue;
    ++episodes;
    lines += rows.env->Episode(0).lines;
    token += static_cast<std::uint64_t>(run.lanes);
    rows.env->Reset(0, {token, 0, 1U << 30});
    rows.StepAll();
  }
  const LaneTrace trace = PlayLane(run, lane);
  EXPECT_EQ(trace.episodes, episodes);
  EXPECT_GT(episodes, 10U);
  EXPECT_EQ(trace.lines, lines + rows.env->Episode(0).lines);
  EXPECT_EQ(std::memcmp(&trace.last, &rows.RecordAt<TetrisRecord>(0), sizeof(TetrisRecord)), 0);
}

TEST(RulesTraceTest, PlaysWhatTheEnvironmentPlays) {
  ExpectTraceFollowsTheEnv({.seed = 6, .lanes = 5, .steps = 3000, .queue_size = 3}, "tetris");
  ExpectTraceFollowsTheEnv({.seed = 6, .lanes = 5, .steps = 3000, .iid_pieces = true}, "tetris");
  ExpectTraceFollowsTheEnv({.seed = 7, .lanes = 9, .steps = 3000, .placement = true},
                           "tetris-placement");
}

TEST(RulesTraceTest, DigestTellsRunsApart) {
  const TraceRun base = {.seed = 1, .lanes = 4, .steps = 500};
  TraceRun other = base;
  EXPECT_EQ(PlayLane(base, 1).digest, PlayLane(other, 1).digest);
  EXPECT_NE(PlayLane(base, 1).digest, PlayLane(base, 2).digest);
  other.seed = 2;
  EXPECT_NE(PlayLane(base, 1).digest, PlayLane(other, 1).digest);
  other = base;
  other.steps = 501;
  EXPECT_NE(PlayLane(base, 1).digest, PlayLane(other, 1).digest);
}

}  // namespace
}  // namespace tetrion
