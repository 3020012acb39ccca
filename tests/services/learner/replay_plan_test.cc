#include "services/learner/replay_plan.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/replay/gate.h"
#include "lib/run/replay_need.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;

RunConfig RunWith(const std::vector<Setting>& more) {
  std::vector<Setting> given = {
      {"env", "cartpole"}, {"algo", "dreamer"},    {"lanes", "2"},         {"max_workers", "2"},
      {"window", "8"},     {"batch_windows", "4"}, {"commit_stride", "4"}, {"replay_rows", "80"}};
  given.insert(given.end(), more.begin(), more.end());
  return MakeRunConfig(given);
}

// A replay of the run's that holds no rows, and how many it takes and gives.
class Traffic {
 public:
  explicit Traffic(const RunConfig& run)
      : run_(run),
        shape_(ReplayShapeOf(run, 0)),
        gate_({.shards = shape_.shards,
               .capacity_rows = run.replay_rows,
               .commit_stride = run.commit_stride},
              MakeSelector(run, shape_), LimiterOf(run)) {}

  // Writes until the gate says no, at most `most` rows of all lanes; returns how many went in.
  int Write(int shard, int most) {
    int rows = 0;
    while (rows < most) {
      const Chunk chunk = gate_.Acquire(shard, most - rows, 0);
      if (!chunk) break;
      gate_.Commit(chunk);
      rows += chunk.rows;
    }
    return rows;
  }
  // Draws batches until the gate says no, at most `most`; returns how many there were.
  int Draw(int most) {
    for (int batches = 0; batches < most; ++batches) {
      const ReadLease lease = gate_.OpenLease(run_.batch_windows, run_.window + 1, 0);
      if (!lease) return batches;
      for (const Window& window : lease.windows()) {
        lanes_.insert(window.lane);
        shards_.insert(window.shard);
      }
    }
    return most;
  }
  ReplayGate& gate() { return gate_; }
  const std::set<int>& lanes() const { return lanes_; }
  const std::set<int>& shards() const { return shards_; }

 private:
  const RunConfig run_;
  const ReplayShape shape_;
  ReplayGate gate_;
  std::set<int> lanes_, shards_;
};

TEST(ReplayPlanTest, DreamerDrawsWindowsOfEveryLaneAloneAndVtraceOfAllTogether) {
  Traffic dreamer(RunWith({}));
  dreamer.Write(0, 20);
  dreamer.Write(1, 20);
  EXPECT_EQ(dreamer.Draw(8), 8);
  EXPECT_EQ(dreamer.lanes(), (std::set<int>{0, 1}));
  EXPECT_EQ(dreamer.shards(), (std::set<int>{0, 1}));
  Traffic vtrace(RunWith({{"algo", "vtrace"}}));
  vtrace.Write(0, 40);
  EXPECT_GT(vtrace.Draw(1), 0);
  EXPECT_EQ(vtrace.lanes(), std::set<int>{-1});
}

TEST(ReplayPlanTest, BatchOfDreamerHasALaneAWindow) {
  const RunConfig dreamer = RunWith({}), vtrace = RunWith({{"algo", "vtrace"}});
  EXPECT_EQ(BatchLanesOf(dreamer, ReplayShapeOf(dreamer, 0)), 4);
  EXPECT_EQ(BatchLanesOf(vtrace, ReplayShapeOf(vtrace, 0)), 8);
}

// Writer and reader take turns over many laps of the ring: neither is ever stuck, and rows trained
// on per row of a lane come out as asked, within the batches that the two may be apart.
TEST(ReplayPlanTest, TrainRatioHoldsOverManyLapsWhateverItIs) {
  for (const char* share : {"0", "0.25", "1"}) {
    for (const char* ratio : {"0.5", "1", "32", "512"}) {
      SCOPED_TRACE(std::string(ratio) + ", online " + share);
      const RunConfig run = RunWith({{"train_ratio", ratio}, {"online_share", share}});
      Traffic traffic(run);
      std::int64_t lane_rows = 0, batches = 0;
      for (int turn = 0; turn < 400; ++turn) {
        const int written = traffic.Write(turn % 2, 16);
        const int drawn = traffic.Draw(64);
        ASSERT_TRUE(written > 0 || drawn > 0) << "both wait at turn " << turn;
        lane_rows += std::int64_t{written} * run.lanes;
        batches += drawn;
      }
      ASSERT_GT(lane_rows, 1000);
      // The first windows' rows begin no window yet, and the first items are free.
      const double counted = static_cast<double>(lane_rows - 2 * 8 * run.lanes -
                                                 UniformFirstItems(run.window, run.batch_windows));
      const double per_row = run.dreamer.train_ratio / run.window;
      const double windows = static_cast<double>(batches) * run.batch_windows;
      const double apart = 4.0 * run.batch_windows,
                   chunk_rows = 2.0 * run.commit_stride * run.lanes;
      EXPECT_LE(windows, counted * per_row + apart);
      EXPECT_GE(windows, (counted - chunk_rows) * per_row - apart * per_row - run.batch_windows);
    }
  }
}

TEST(ReplayPlanTest, SelectionBeginsWithAsManyWindowsAsABatchHasRows) {
  const RunConfig run = RunWith({});
  Traffic traffic(run);
  EXPECT_EQ(traffic.Write(0, 23), 23);
  EXPECT_EQ(traffic.Draw(1), 0) << "20 rows are committed: 12 starts of 2 lanes";
  EXPECT_EQ(traffic.Write(0, 1), 1);
  EXPECT_EQ(traffic.Draw(1), 1) << "16 starts of 2 lanes";
}

// Ingest is held up by a trainer that does not train, until a drain has begun.
TEST(ReplayPlanTest, DrainLetsRowsInWithoutATrainer) {
  Traffic traffic(RunWith({}));
  EXPECT_LT(traffic.Write(0, 1000), 100);
  traffic.gate().LetWriterRun();
  EXPECT_EQ(traffic.Write(0, 1000), 1000);
  EXPECT_EQ(traffic.Draw(3), 3);
}

TEST(ReplayPlanTest, DrainKeepsTheTrainersRatioAndItsFirstWindows) {
  const RunConfig run = RunWith({{"dreamer.train_ratio", "8"}});
  Traffic traffic(run);
  traffic.gate().LetWriterRun();
  ASSERT_EQ(traffic.Write(0, run.window + 4), run.window + 4);
  EXPECT_EQ(traffic.Draw(1), 0) << "a few windows are no batch";
  ASSERT_EQ(traffic.Write(0, 80), 80);
  EXPECT_LT(traffic.Draw(1000), 100) << "8 rows trained for each, whatever else";
}

}  // namespace
}  // namespace tetrion::learner
