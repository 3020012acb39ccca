#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/replay/batch_lanes.h"
#include "lib/replay/gate.h"
#include "lib/replay/latents.h"
#include "lib/replay/rows.h"
#include "tests/lib/replay/scripted_selector.h"

// What every memory of the replay does with the latents of its rows. `Memory` is made from
// (RowSpec, shards, capacity_rows, LatentSpec) and has rows(), Missing(), Close(lease) behind its
// last use, and GatherLatents and ScatterLatents between a lease's rows and the host.
namespace tetrion::testing {

inline constexpr RowSpec kLatentRow = {.record_bytes = 8, .lanes = 3, .has_mask = false};
inline constexpr int kLatentCapacity = 16, kLatentStride = 4, kLatentRows = 6;
// Such that latents are copied by 16 bytes at once, and by one.
inline constexpr LatentSpec kLatentSpecs[] = {{.deter = 8, .stoch = 16}, {.deter = 3, .stoch = 5}};

// Latents of so many cells on the host, and a value of their own in each.
struct LatentBatch {
  LatentBatch(const LatentSpec& spec, std::size_t cells)
      : deter(cells * spec.deter), stoch(cells * spec.stoch), valid(cells, 9) {
    for (std::size_t i = 0; i < deter.size(); ++i) deter[i] = static_cast<std::uint16_t>(i * 7 + 1);
    for (std::size_t i = 0; i < stoch.size(); ++i) stoch[i] = static_cast<std::uint8_t>(i * 5 + 2);
  }
  LatentColumns Columns() {
    return {.deter = deter.data(), .stoch = stoch.data(), .valid = valid.data()};
  }
  std::vector<std::uint16_t> deter;
  std::vector<std::uint8_t> stoch, valid;
};

// What one cell holds of a column of `cells` cells.
template <class T>
std::vector<T> CellOf(const std::vector<T>& column, int cells, int cell) {
  const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(column.size()) / cells;
  return {column.begin() + cell * width, column.begin() + (cell + 1) * width};
}

// A full ring of two shards whose rows have no latents yet, and windows that wrap in it.
template <class Memory>
class LatentReplay {
 public:
  explicit LatentReplay(const LatentSpec& spec)
      : spec_(spec), memory_(kLatentRow, 2, kLatentCapacity, spec) {
    auto selector = std::make_unique<ScriptedSelector>();
    selector_ = selector.get();
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 2, .capacity_rows = kLatentCapacity, .commit_stride = kLatentStride},
        std::move(selector), Limiter::Unlimited());
    for (int shard = 0; shard < 2; ++shard) Push(shard, kLatentCapacity + kLatentStride);
    LeaseFrom(12);
  }

  // All lanes of shard 1 from this row on, and one lane of shard 0.
  void LeaseFrom(std::uint64_t row) {
    Lease({{.shard = 1, .start = row}, {.shard = 0, .start = 9, .lane = 2}});
  }
  void Lease(const std::vector<Window>& windows) {
    selector_->windows = windows;
    lease_ = gate_->OpenLease(static_cast<int>(windows.size()), kLatentRows, 0);
  }
  void Push(int shard, int count) {
    const std::vector<std::byte> rows(static_cast<std::size_t>(count) *
                                      memory_.rows().layout().row_bytes);
    int pushed = 0;
    EXPECT_EQ(PushRows(*gate_, memory_.rows(), shard, rows.data(), count, 0, pushed),
              AcquireResult::kAcquired);
  }
  // Writes a row without asking the gate, as no writer may.
  void WriteUnasked(int shard, std::uint64_t row) {
    const std::vector<std::byte> bytes(memory_.rows().layout().row_bytes);
    memory_.rows().Write(
        {.result = AcquireResult::kAcquired, .shard = shard, .first = row, .rows = 1},
        bytes.data());
  }
  void Scatter(const BatchPart& part, LatentBatch in) { memory_.ScatterLatents(lease_, part, in); }
  LatentBatch Gather(const BatchPart& part) {
    LatentBatch got(spec_, static_cast<std::size_t>(part.lanes * part.rows));
    // Other bytes than those that tests scatter, so that a column left alone is noticed.
    std::fill(got.deter.begin(), got.deter.end(), std::uint16_t{0xDEAD});
    std::fill(got.stoch.begin(), got.stoch.end(), std::uint8_t{0xDD});
    memory_.GatherLatents(lease_, part, got);
    return got;
  }
  void Close() { memory_.Close(lease_); }
  auto& rows() { return memory_.rows(); }
  const ReadLease& lease() const { return lease_; }

 private:
  const LatentSpec spec_;
  Memory memory_;
  ScriptedSelector* selector_ = nullptr;
  std::unique_ptr<ReplayGate> gate_;
  ReadLease lease_;
};

template <class Memory>
class LatentsSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = Memory::Missing()) GTEST_SKIP() << why;
  }
};

TYPED_TEST_SUITE_P(LatentsSuite);

TYPED_TEST_P(LatentsSuite, NewRowsHaveNoneAndWhatIsWrittenBackIsFoundAgain) {
  for (const LatentSpec& spec : kLatentSpecs) {
    LatentReplay<TypeParam> replay(spec);
    const BatchPart all = {.lanes = 4, .rows = kLatentRows};
    EXPECT_EQ(replay.Gather(all).valid, std::vector<std::uint8_t>(4 * kLatentRows, 0));

    const BatchPart part = {.first_lane = 1, .lanes = 3, .first_row = 1, .rows = kLatentRows - 1};
    const LatentBatch in(spec, static_cast<std::size_t>(part.lanes * part.rows));
    replay.Scatter(part, in);
    replay.Close();
    replay.LeaseFrom(12);
    const LatentBatch back = replay.Gather(part);
    EXPECT_EQ(back.deter, in.deter);
    EXPECT_EQ(back.stoch, in.stoch);
    EXPECT_EQ(back.valid, std::vector<std::uint8_t>(in.valid.size(), 1));
    const LatentBatch whole = replay.Gather(all);
    for (std::size_t cell = 0; cell < whole.valid.size(); ++cell) {
      EXPECT_EQ(whole.valid[cell], cell >= 4 && cell % 4 != 0 ? 1 : 0) << cell;
    }
    replay.Close();
  }
}

// Another lap: the slots are the same, the rows are others. Shard 0 keeps what it has.
TYPED_TEST_P(LatentsSuite, RowsThatAreWrittenAnewHaveNoneAgain) {
  for (const LatentSpec& spec : kLatentSpecs) {
    LatentReplay<TypeParam> replay(spec);
    const BatchPart all = {.lanes = 4, .rows = kLatentRows};
    replay.Scatter(all, LatentBatch(spec, 4 * kLatentRows));
    EXPECT_EQ(replay.Gather(all).valid, std::vector<std::uint8_t>(4 * kLatentRows, 1));
    replay.Close();
    replay.Push(1, kLatentCapacity);
    replay.LeaseFrom(12 + kLatentCapacity);
    const LatentBatch got = replay.Gather(all);
    for (std::size_t cell = 0; cell < got.valid.size(); ++cell) {
      EXPECT_EQ(got.valid[cell], cell % 4 == 3 ? 1 : 0) << cell;
    }
    replay.Close();
  }
}

// Windows are drawn with replacement: two of them may share rows of a lane.
TYPED_TEST_P(LatentsSuite, WhereWindowsOverlapTheLastOnesAreKeptWhole) {
  for (const LatentSpec& spec : kLatentSpecs) {
    LatentReplay<TypeParam> replay(spec);
    replay.Close();
    // The second begins two rows behind the first, the fourth, of other lanes, five before the
    // third; the last repeats the first's lane a row later. All but shard 0's wrap.
    replay.Lease({{.shard = 1, .start = 12, .lane = 0},
                  {.shard = 1, .start = 10, .lane = 0},
                  {.shard = 0, .start = 11, .lane = 2},
                  {.shard = 1, .start = 11, .lane = 1},
                  {.shard = 1, .start = 13, .lane = 0}});
    const BatchPart all = {.lanes = 5, .rows = kLatentRows};
    constexpr int kCells = 5 * kLatentRows;
    const LatentBatch in(spec, kCells);
    replay.Scatter(all, in);
    const LatentBatch got = replay.Gather(all);
    const auto expect_same = [&](int window, int row, int from_window, int from_row) {
      EXPECT_EQ(CellOf(got.deter, kCells, row * 5 + window),
                CellOf(in.deter, kCells, from_row * 5 + from_window))
          << "deter of window " << window << ", row " << row;
      EXPECT_EQ(CellOf(got.stoch, kCells, row * 5 + window),
                CellOf(in.stoch, kCells, from_row * 5 + from_window))
          << "stoch of window " << window << ", row " << row;
    };
    for (int row = 0; row < kLatentRows; ++row) {
      expect_same(4, row, 4, row);  // the last window
      expect_same(2, row, 2, row);  // another shard
      expect_same(3, row, 3, row);  // another lane
      // Rows 10 to 12 of the lane are the second window's, later ones the last window's.
      expect_same(1, row, row < 3 ? 1 : 4, row < 3 ? row : row - 3);
      expect_same(0, row, row < 1 ? 1 : 4, row < 1 ? row + 2 : row - 1);
    }
    replay.Close();
  }
}

REGISTER_TYPED_TEST_SUITE_P(LatentsSuite, NewRowsHaveNoneAndWhatIsWrittenBackIsFoundAgain,
                            WhereWindowsOverlapTheLastOnesAreKeptWhole,
                            RowsThatAreWrittenAnewHaveNoneAgain);

}  // namespace tetrion::testing
