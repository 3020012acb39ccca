#include "lib/rl/minibatch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"

namespace tetrion {
namespace {

constexpr int kSteps = 4, kLanes = 2, kActions = 3;

constexpr int kQueueSize = 3;

// The record is the lane's number.
void Expand(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  EXPECT_EQ(queue_size, kQueueSize);
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(records[i]);
}

EnvSpec TestEnv() {
  EnvSpec env;
  env.obs.record_bytes = 1;
  env.obs.view_floats = 1;
  env.obs.queue_size = kQueueSize;
  env.obs.expand = Expand;
  env.action.count = kActions;
  return env;
}

class MinibatchTest : public ::testing::Test {
 protected:
  // A window whose last row has `action` in its last lane.
  TrainBatch BatchWith(std::int32_t action) {
    std::vector<std::byte> row(rows_.layout().row_bytes);
    for (int t = 0; t <= kSteps; ++t) {
      const RowView view(rows_.layout(), row.data());
      view.record[1] = std::byte{1};
      view.reward[0] = 8.0F;
      view.action[1] = t == kSteps ? action : 1;
      int pushed = 0;
      (void)PushRows(gate_, rows_, 0, row.data(), 1, 0, pushed);
    }
    return TrainBatch(gate_.OpenLease(1, kSteps + 1, 0), rows_);
  }

  ReplayGate gate_{{.shards = 1, .capacity_rows = 16, .commit_stride = 1},
                   std::make_unique<FifoSelector>(1, kSteps),
                   FifoLimiter(1)};
  HostRows rows_{{.record_bytes = 1, .lanes = kLanes, .has_mask = false}, 1, 16};
};

TEST_F(MinibatchTest, LanesOfABatchAreGatheredIntoColumns) {
  Minibatch minibatch(TestEnv(), kSteps, 1);
  minibatch.Fill(TestEnv(), BatchWith(2), 1, /*symlog_reward=*/false);
  minibatch.Expand(TestEnv(), 0, 1);
  EXPECT_EQ(minibatch.view, std::vector<float>(kSteps + 1, 1.0F));
  EXPECT_EQ(minibatch.action.back(), 2);
}

TEST_F(MinibatchTest, PartsTogetherExpandEveryCellOnce) {
  for (const int parts : {1, 2, 3, 100}) {
    Minibatch minibatch(TestEnv(), kSteps, kLanes);
    minibatch.Fill(TestEnv(), BatchWith(2), 0, false);
    std::fill(minibatch.view.begin(), minibatch.view.end(), -1.0F);
    for (int part = 0; part < parts; ++part) {
      const std::vector<float> before = minibatch.view;
      minibatch.Expand(TestEnv(), part, parts);
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] < 0) continue;
        EXPECT_EQ(minibatch.view[i], before[i]);
      }
    }
    std::vector<float> expected;
    for (int t = 0; t <= kSteps; ++t) expected.insert(expected.end(), {0.0F, 1.0F});
    EXPECT_EQ(minibatch.view, expected) << parts;
  }
}

TEST_F(MinibatchTest, ActionThatTheEnvironmentHasNotIsRefused) {
  for (const std::int32_t action : {-1, kActions}) {
    Minibatch minibatch(TestEnv(), kSteps, kLanes);
    std::string said;
    try {
      minibatch.Fill(TestEnv(), BatchWith(action), 0, false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      said = error.what();
    }
    EXPECT_THAT(said, ::testing::HasSubstr("wrote into a ring")) << action;
  }
}

}  // namespace
}  // namespace tetrion
