#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/error.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/gate.h"
#include "lib/replay/rows.h"
#include "lib/rl/sequence_batch.h"
#include "tests/lib/replay/scripted_selector.h"

// What a recurrent model's trainer gets of rows in any memory of the replay. `Memory`: HostMemory
// or DeviceMemory (tests/lib/replay).
namespace tetrion::testing {

inline constexpr int kSequenceLanes = 2, kSequenceCapacity = 8, kSequenceSteps = 5;
inline constexpr LatentSpec kSequenceLatents = {.deter = 2, .stoch = 3};
inline constexpr std::uint64_t kSequenceRows = 12, kSequenceContext = 6;

// The record is the row's tag.
inline void ExpandTag(const std::byte* records, std::int64_t n, int, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(records[i]);
}

inline EnvSpec SequenceEnv() {
  EnvSpec env;
  env.obs.record_bytes = 1;
  env.obs.view_floats = 1;
  env.obs.expand = ExpandTag;
  env.action.count = 250;
  return env;
}

// Two lanes of 12 rows in a ring of 8, so that rows 4..11 are there and the window of rows 6..11
// lies around its end. Lane 0 plays three episodes: rows 0..6 end terminally, rows 7..9 truncated,
// rows 10.. go on. Lane 1's actor died behind row 8: row 9 begins anew without an end before it.
//
//   row     0   ...  6   7   8   9   10  11
//   lane 0  F        T   F       U   F
//   lane 1  F                    F
//
// Lane 1 of the rows comes first: the batch is as the windows were drawn.
template <class Memory>
class SequenceReplay {
 public:
  SequenceReplay() {
    auto selector = std::make_unique<ScriptedSelector>();
    selector_ = selector.get();
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 1, .capacity_rows = kSequenceCapacity, .commit_stride = 2},
        std::move(selector), Limiter::Unlimited());
    Push(kSequenceRows);
  }

  static int TagOf(std::uint64_t row, int lane) { return static_cast<int>(row) * 5 + lane; }
  // The next `count` rows. In rows 12.. lane 0 is cut, then idles.
  void Push(std::uint64_t count) {
    for (const std::uint64_t end = pushed_ + count; pushed_ < end; ++pushed_) {
      const std::vector<std::byte> row = RowOf(pushed_);
      int pushed = 0;
      EXPECT_EQ(PushRows(*gate_, memory_.rows(), 0, row.data(), 1, 0, pushed),
                AcquireResult::kAcquired);
    }
  }
  // `steps` rows behind this context row.
  // `first`: the lane that comes first; lane 0 the second.
  TrainBatch Batch(std::uint64_t context = kSequenceContext, int steps = kSequenceSteps,
                   int first = 1) {
    selector_->windows = {{.shard = 0, .start = context, .lane = first},
                          {.shard = 0, .start = context, .lane = 0}};
    return TrainBatch(gate_->OpenLease(2, steps + 1, 0), memory_.rows());
  }
  SequenceBatch Filled(std::uint64_t context = kSequenceContext, int steps = kSequenceSteps) {
    SequenceBatch sequence(SequenceEnv(), steps, kSequenceLanes, kSequenceLatents);
    sequence.Fill(SequenceEnv(), Batch(context, steps));
    return sequence;
  }
  // As a trainer: values [rows, 2, ...] that count up from `first`, behind rows 1.. of the batch.
  static void WriteBack(TrainBatch& batch, int rows, int first) {
    const auto cells = static_cast<std::size_t>(rows * kSequenceLanes);
    std::vector<std::uint16_t> deter(cells * kSequenceLatents.deter);
    std::vector<std::uint8_t> stoch(cells * kSequenceLatents.stoch);
    for (auto& value : deter) value = static_cast<std::uint16_t>(first++);
    for (auto& value : stoch) value = static_cast<std::uint8_t>(first++);
    batch.ScatterLatents({.lanes = kSequenceLanes, .first_row = 1, .rows = rows},
                         {.deter = deter.data(), .stoch = stoch.data()});
  }

 private:
  static std::uint8_t FlagsOf(std::uint64_t row, int lane) {
    if (row >= kSequenceRows) return lane == 0 ? kIsLast | kTruncated : 0;
    if (row == 0) return kIsFirst;
    if (lane == 1) return row == 9 ? kIsFirst : 0;
    if (row == 7 || row == 10) return kIsFirst;
    if (row == 6) return kIsLast | kTerminated;
    return row == 9 ? kIsLast | kTruncated : 0;
  }
  std::vector<std::byte> RowOf(std::uint64_t number) {
    const RowLayout& layout = memory_.rows().layout();
    std::vector<std::byte> bytes(layout.row_bytes);
    const RowView view(layout, bytes.data());
    for (int lane = 0; lane < kSequenceLanes; ++lane) {
      const int tag = TagOf(number, lane);
      const std::uint8_t flags = FlagsOf(number, lane);
      view.record[lane] = static_cast<std::byte>(tag);
      view.action[lane] = (flags & kIsLast) != 0 ? 0 : tag;
      view.reward[lane] = (flags & kIsFirst) != 0 ? 0.0F : static_cast<float>(tag) * 0.5F;
      view.flags[lane] = flags;
      view.cont[lane] = (flags & kTerminated) != 0 ? 0.0F : 1.0F;
    }
    return bytes;
  }

  Memory memory_{{.record_bytes = 1, .lanes = kSequenceLanes, .has_mask = false},
                 1,
                 kSequenceCapacity,
                 kSequenceLatents};
  ScriptedSelector* selector_ = nullptr;
  std::unique_ptr<ReplayGate> gate_;
  std::uint64_t pushed_ = 0;
};

using Bytes = std::vector<std::uint8_t>;
using Numbers = std::vector<float>;

template <class Memory>
class SequenceBatchSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = Memory::Missing()) GTEST_SKIP() << why;
    replay_ = std::make_unique<SequenceReplay<Memory>>();
  }
  std::unique_ptr<SequenceReplay<Memory>> replay_;
};

TYPED_TEST_SUITE_P(SequenceBatchSuite);

TYPED_TEST_P(SequenceBatchSuite, RowsAroundTheRingsEndCarryTheirOwnObservationsAndRewards) {
  const SequenceBatch got = this->replay_->Filled();
  EXPECT_EQ(got.view, (Numbers{31, 30, 36, 35, 41, 40, 46, 45, 51, 50, 56, 55}));
  EXPECT_EQ(got.reward, (Numbers{18, 0, 20.5, 20, 0, 22.5, 25.5, 0, 28, 27.5}));
}

TYPED_TEST_P(SequenceBatchSuite, EpisodesBeginAndEndWhereTheRowsSayAndWhereAnActorDied) {
  const SequenceBatch got = this->replay_->Filled();
  EXPECT_EQ(got.is_first, (Bytes{0, 1, 0, 0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(got.is_last, (Bytes{0, 0, 1, 0, 0, 1, 0, 0, 0, 0})) << "row 8 of lane 1 was cut";
  EXPECT_EQ(got.is_terminal, (Bytes(10, 0))) << "neither a truncation nor a cut is terminal";
  EXPECT_EQ(got.is_idle, (Bytes(10, 0)));
}

TYPED_TEST_P(SequenceBatchSuite, ContextWithoutLatentsHidesTheActionBeforeTheFirstTrainedRow) {
  const SequenceBatch got = this->replay_->Filled();
  EXPECT_EQ(got.valid, (Bytes{0, 0}));
  EXPECT_EQ(got.prev_action, (std::vector<std::int32_t>{-1, -1, 36, 35, -1, 40, 46, -1, 51, 50}));
}

// An update of rows 5 and 6, then one whose context is row 6.
TYPED_TEST_P(SequenceBatchSuite, LatentsThatOneUpdateWritesAreTheContextOfTheNext) {
  {
    TrainBatch batch = this->replay_->Batch(kSequenceContext - 2, 2);
    this->replay_->WriteBack(batch, 2, 1);
  }
  const SequenceBatch got = this->replay_->Filled();
  EXPECT_EQ(got.valid, (Bytes{1, 1}));
  EXPECT_EQ(got.deter, (std::vector<std::uint16_t>{5, 6, 7, 8}));
  EXPECT_EQ(got.stoch, (Bytes{15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(got.prev_action, (std::vector<std::int32_t>{31, -1, 36, 35, -1, 40, 46, -1, 51, 50}))
      << "lane 0 begins an episode at row 7";
  EXPECT_EQ(this->replay_->Filled(kSequenceContext - 2, 2).valid, (Bytes{0, 0}))
      << "the context row keeps what it had";
}

// The window of rows 6..11 lies around the ring's end, and so does what is written back to it.
TYPED_TEST_P(SequenceBatchSuite, LatentsAroundTheRingsEndComeBackRowByRow) {
  {
    TrainBatch batch = this->replay_->Batch();
    this->replay_->WriteBack(batch, kSequenceSteps, 1);
  }
  for (int row = 1; row < kSequenceSteps; ++row) {
    const SequenceBatch got =
        this->replay_->Filled(kSequenceContext + static_cast<std::uint64_t>(row), 1);
    const auto deter = static_cast<std::uint16_t>(1 + 4 * (row - 1));
    const auto stoch = static_cast<std::uint8_t>(21 + 6 * (row - 1));
    EXPECT_EQ(got.valid, (Bytes{1, 1}));
    EXPECT_EQ(got.deter.front(), deter) << "row " << row;
    EXPECT_EQ(got.deter.back(), deter + 3);
    EXPECT_EQ(got.stoch.front(), stoch);
    EXPECT_EQ(got.stoch.back(), stoch + 5);
  }
}

TYPED_TEST_P(SequenceBatchSuite, RowsThatOverwriteTrainedOnesHaveNoLatents) {
  {
    TrainBatch batch = this->replay_->Batch();
    this->replay_->WriteBack(batch, kSequenceSteps, 1);
  }
  this->replay_->Push(kSequenceCapacity - 2);
  EXPECT_EQ(this->replay_->Filled(kSequenceRows - 2, 1).valid, (Bytes{1, 1})) << "rows still there";
  EXPECT_EQ(this->replay_->Filled(kSequenceRows, 1).valid, (Bytes{0, 0}));
  this->replay_->Push(2);
  EXPECT_EQ(this->replay_->Filled(kSequenceRows + kSequenceCapacity - 2, 1).valid, (Bytes{0, 0}));
}

TYPED_TEST_P(SequenceBatchSuite, LastRowOfAllSaysByItselfThatItIsTerminal) {
  const SequenceBatch got = this->replay_->Filled(4, 2);
  EXPECT_EQ(got.is_last, (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(got.is_terminal, (Bytes{0, 0, 0, 1}));
}

TYPED_TEST_P(SequenceBatchSuite, RowsOfALaneThatIdlesBehindItsEndBeginAnew) {
  this->replay_->Push(2);
  const SequenceBatch got = this->replay_->Filled(kSequenceRows - 1, 2);
  EXPECT_EQ(got.is_first, (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(got.is_last, (Bytes{0, 1, 0, 1}));
  EXPECT_EQ(got.is_terminal, (Bytes(4, 0)));
  EXPECT_EQ(got.is_idle, (Bytes{0, 0, 0, 1})) << "the row that was cut is its episode's";
  EXPECT_FALSE(got.AllIdle());
  EXPECT_EQ(got.prev_action[3], -1);
}

// Lane 0 twice.
TYPED_TEST_P(SequenceBatchSuite, ABatchOfIdleRowsAloneSaysSo) {
  this->replay_->Push(4);
  SequenceBatch got(SequenceEnv(), 2, kSequenceLanes, kSequenceLatents);
  got.Fill(SequenceEnv(), this->replay_->Batch(kSequenceRows, 2, /*first=*/0));
  EXPECT_EQ(got.is_idle, (Bytes(4, 1)));
  EXPECT_TRUE(got.AllIdle());
}

TYPED_TEST_P(SequenceBatchSuite, ActionThatTheEnvironmentHasNotIsRefused) {
  EnvSpec env = SequenceEnv();
  env.action.count = 40;
  SequenceBatch got(env, kSequenceSteps, kSequenceLanes, kSequenceLatents);
  EXPECT_THROW(got.Fill(env, this->replay_->Batch()), Error);
}

REGISTER_TYPED_TEST_SUITE_P(SequenceBatchSuite,
                            RowsAroundTheRingsEndCarryTheirOwnObservationsAndRewards,
                            EpisodesBeginAndEndWhereTheRowsSayAndWhereAnActorDied,
                            ContextWithoutLatentsHidesTheActionBeforeTheFirstTrainedRow,
                            LatentsThatOneUpdateWritesAreTheContextOfTheNext,
                            LatentsAroundTheRingsEndComeBackRowByRow,
                            RowsThatOverwriteTrainedOnesHaveNoLatents,
                            LastRowOfAllSaysByItselfThatItIsTerminal,
                            RowsOfALaneThatIdlesBehindItsEndBeginAnew, ABatchOfIdleRowsAloneSaysSo,
                            ActionThatTheEnvironmentHasNotIsRefused);

}  // namespace tetrion::testing
