#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/gate.h"
#include "lib/replay/rows.h"
#include "lib/replay/selectors/fifo.h"
#include "tests/lib/replay/any_window_selector.h"
#include "tests/lib/replay/gathered.h"
#include "tests/lib/replay/scripted_selector.h"

// What every memory of the replay does behind a gate, whatever it is made of. `Memory` is made from
// (RowSpec, shards, capacity_rows) and has rows(), Action(shard, row, lane) of a row as it lies
// there once its writing is done, and Missing(): why there can be none of it here, or nullptr.
namespace tetrion::testing {

inline constexpr RowSpec kSuiteRow = {.record_bytes = 8, .lanes = 3, .has_mask = true};
inline constexpr int kSuiteStride = 4, kSuiteWindow = 4, kSuiteCapacity = 16;

// What a row's cells say: shard, row and lane.
inline std::int32_t TagOf(int shard, std::uint64_t row, int lane) {
  return shard * 10000 + static_cast<std::int32_t>(row) * 10 + lane;
}

inline std::vector<std::byte> TaggedRow(const RowLayout& layout, int shard, std::uint64_t row) {
  std::vector<std::byte> bytes(layout.row_bytes);
  const RowView view(layout, bytes.data());
  view.header->row = row;
  view.header->policy_version = static_cast<std::uint32_t>(TagOf(shard, row, 9));
  for (int lane = 0; lane < static_cast<int>(layout.spec.lanes); ++lane) {
    const std::int32_t tag = TagOf(shard, row, lane);
    std::memcpy(view.record + static_cast<std::uint32_t>(lane) * layout.spec.record_bytes, &tag,
                sizeof tag);
    view.action[lane] = tag;
    view.log_prob[lane] = static_cast<float>(-tag);
    view.mask[lane] = static_cast<std::uint64_t>(tag) << 40;
    view.reward[lane] = static_cast<float>(tag) * 0.5F;
    view.flags[lane] = 0;
    view.cont[lane] = 1.0F;
    view.episode_id[lane] = 0;
  }
  return bytes;
}

template <class Memory>
class RowsSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = Memory::Missing()) GTEST_SKIP() << why;
  }
  // Two shards behind a gate with this selector; both hold `committed` tagged rows.
  template <class S>
  S& Build(std::unique_ptr<S> selector, const Limiter& limiter, int committed) {
    S& built = *selector;
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 2, .capacity_rows = kSuiteCapacity, .commit_stride = kSuiteStride},
        std::move(selector), limiter);
    memory_ = std::make_unique<Memory>(kSuiteRow, 2, kSuiteCapacity);
    for (int shard = 0; shard < 2; ++shard) {
      for (int row = 0; row < committed; ++row) {
        EXPECT_EQ(Push(shard, static_cast<std::uint64_t>(row), 1), 1);
      }
    }
    return built;
  }
  // Pushes tagged rows from number `row` on; returns how many went in.
  int Push(int shard, std::uint64_t row, int count) {
    std::vector<std::byte> rows;
    for (int i = 0; i < count; ++i) {
      const auto one =
          TaggedRow(memory_->rows().layout(), shard, row + static_cast<std::uint64_t>(i));
      rows.insert(rows.end(), one.begin(), one.end());
    }
    int pushed = 0;
    (void)PushRows(*gate_, memory_->rows(), shard, rows.data(), count, 0, pushed);
    return pushed;
  }
  ReadLease Lease(int windows) { return gate_->OpenLease(windows, kSuiteWindow + 1, 0); }
  Gathered Gather(const ReadLease& lease, int first_lane, int lanes) {
    Gathered got(kSuiteRow, lease.rows(), lanes);
    memory_->rows().Gather(lease, first_lane, lanes, got.Columns());
    return got;
  }
  std::vector<std::uint32_t> Versions(const ReadLease& lease) {
    std::vector<std::uint32_t> versions(static_cast<std::size_t>(lease.rows()) *
                                        lease.windows().size());
    memory_->rows().GatherVersions(lease, versions.data());
    return versions;
  }
  static void ExpectTag(const Gathered& got, std::size_t cell, std::int32_t tag) {
    EXPECT_EQ(std::memcmp(got.record.data() + cell * kSuiteRow.record_bytes, &tag, sizeof tag), 0);
    EXPECT_EQ(got.action[cell], tag);
    EXPECT_EQ(got.log_prob[cell], static_cast<float>(-tag));
    EXPECT_EQ(got.mask[cell], static_cast<std::uint64_t>(tag) << 40);
    EXPECT_EQ(got.reward[cell], static_cast<float>(tag) * 0.5F);
    EXPECT_EQ(got.cont[cell], 1.0F);
  }

  std::unique_ptr<ReplayGate> gate_;
  std::unique_ptr<Memory> memory_;
};

TYPED_TEST_SUITE_P(RowsSuite);

TYPED_TEST_P(RowsSuite, WindowsLieSideBySideTimeMajor) {
  auto& selector =
      this->Build(std::make_unique<ScriptedSelector>(), Limiter::Unlimited(), kSuiteCapacity);
  selector.windows = {{.shard = 1, .start = 7}, {.shard = 0, .start = 2}};
  const ReadLease lease = this->Lease(2);
  const Gathered got = this->Gather(lease, 0, 6);
  const std::vector<std::uint32_t> versions = this->Versions(lease);
  for (std::size_t t = 0; t <= kSuiteWindow; ++t) {
    for (int lane = 0; lane < 6; ++lane) {
      const Window& window = selector.windows[lane < 3 ? 0 : 1];
      this->ExpectTag(got, t * 6 + static_cast<std::size_t>(lane),
                      TagOf(window.shard, window.start + t, lane % 3));
    }
    EXPECT_EQ(versions[t * 2], static_cast<std::uint32_t>(TagOf(1, 7 + t, 9)));
    EXPECT_EQ(versions[t * 2 + 1], static_cast<std::uint32_t>(TagOf(0, 2 + t, 9)));
  }
}

TYPED_TEST_P(RowsSuite, AnyRangeOfTheBatchsLanesCanBeGatheredAlone) {
  auto& selector =
      this->Build(std::make_unique<ScriptedSelector>(), Limiter::Unlimited(), kSuiteCapacity);
  selector.windows = {{.shard = 0, .start = 1}, {.shard = 1, .start = 9}};
  const ReadLease lease = this->Lease(2);
  for (int first = 0; first < 6; ++first) {
    for (int lanes = 1; first + lanes <= 6; ++lanes) {
      const Gathered got = this->Gather(lease, first, lanes);
      for (int i = 0; i < (kSuiteWindow + 1) * lanes; ++i) {
        const int lane = first + i % lanes;
        const Window& window = selector.windows[lane < 3 ? 0 : 1];
        this->ExpectTag(
            got, static_cast<std::size_t>(i),
            TagOf(window.shard, window.start + static_cast<std::uint64_t>(i / lanes), lane % 3));
      }
    }
  }
}

TYPED_TEST_P(RowsSuite, WindowOfOneLaneIsThatLaneBesideWindowsOfAll) {
  auto& selector =
      this->Build(std::make_unique<ScriptedSelector>(), Limiter::Unlimited(), kSuiteCapacity);
  selector.windows = {{.shard = 0, .start = 1, .lane = 2},
                      {.shard = 1, .start = 3},
                      {.shard = 1, .start = 9, .lane = 0}};
  const ReadLease lease = this->Lease(3);
  ASSERT_EQ(this->memory_->rows().BatchLanes(lease), 5);
  const Gathered got = this->Gather(lease, 0, 5);
  for (std::size_t t = 0; t <= kSuiteWindow; ++t) {
    this->ExpectTag(got, t * 5, TagOf(0, 1 + t, 2));
    for (int lane = 0; lane < 3; ++lane) {
      this->ExpectTag(got, t * 5 + 1 + static_cast<std::size_t>(lane), TagOf(1, 3 + t, lane));
    }
    this->ExpectTag(got, t * 5 + 4, TagOf(1, 9 + t, 0));
  }
  const Gathered last = this->Gather(lease, 4, 1);
  this->ExpectTag(last, 2, TagOf(1, 9 + 2, 0));
}

TYPED_TEST_P(RowsSuite, CutEpisodeBecomesLastWithoutBecomingTerminal) {
  auto& selector = this->Build(std::make_unique<ScriptedSelector>(), Limiter::Unlimited(), 0);
  const RowLayout& layout = this->memory_->rows().layout();
  for (std::uint64_t r = 0; r < 8; ++r) {
    std::vector<std::byte> row = TaggedRow(layout, 0, r);
    // Lane 2 restarts at row 2 without an is_last at row 1; the batch ends before row 5 does so.
    if (r == 2 || r == 5) RowView(layout, row.data()).flags[2] = kIsFirst;
    if (r == 4) RowView(layout, row.data()).flags[1] = kIsFirst;  // the batch's last row
    int pushed = 0;
    ASSERT_EQ(PushRows(*this->gate_, this->memory_->rows(), 0, row.data(), 1, 0, pushed),
              AcquireResult::kAcquired);
  }
  selector.windows = {{.shard = 0, .start = 0}};
  const ReadLease lease = this->Lease(1);
  const Gathered got = this->Gather(lease, 0, 3);
  std::vector<std::uint8_t> expected(15, 0);
  expected[1 * 3 + 2] = kIsLast;
  expected[2 * 3 + 2] = kIsFirst;
  expected[3 * 3 + 1] = kIsLast;  // or the other episode's value would be its bootstrap
  expected[4 * 3 + 1] = kIsFirst;
  EXPECT_EQ(got.flags, expected);
  EXPECT_EQ(got.cont[1 * 3 + 2], 1.0F);
}

// A commit makes rows visible: at that moment they hold their own data, not the last lap's.
TYPED_TEST_P(RowsSuite, RowsAreInMemoryWhenTheyAreCommitted) {
  auto& selector =
      this->Build(std::make_unique<AnyWindowSelector>(kSuiteWindow + 1), Limiter::Unlimited(), 0);
  std::uint64_t seen = 0;
  int wrong = 0;
  selector.on_commit = [&](int, std::uint64_t committed) {
    for (; seen < committed; ++seen) {
      wrong += this->memory_->Action(0, seen, 1) != TagOf(0, seen, 1) ? 1 : 0;
    }
  };
  std::uint64_t next = 0;
  for (int count = 1; count <= 9; ++count) {
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(this->Push(0, next, count), count);
      next += static_cast<std::uint64_t>(count);
    }
  }
  ASSERT_EQ(this->Push(0, next, 1), 1);
  EXPECT_EQ(seen, 8U * 45);
  this->gate_->Flush(0);
  EXPECT_EQ(seen, 8U * 45 + 1) << "the last row of a ring that ends in a chunk";
  EXPECT_EQ(wrong, 0);
}

// Ten laps with random push sizes and random partial flushes: every window is delivered once, in
// order, with its own rows.
TYPED_TEST_P(RowsSuite, WrapsAtEveryOffsetWithoutLosingOrTearingAWindow) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    this->Build(std::make_unique<FifoSelector>(2, kSuiteWindow), FifoLimiter(1), 0);
    std::uint64_t next_window = 0, row = 0;
    for (std::uint32_t turn = 0; row < 160; ++turn) {
      const PhiloxBlock draw = PhiloxDraw(seed, turn, 0, PhiloxPurpose::kSampler);
      const int count = 1 + static_cast<int>(BoundedDraw(draw.word[0], 7));
      const int pushed = this->Push(0, row, count);
      row += static_cast<std::uint64_t>(pushed);
      if (draw.word[1] % 5 == 0) this->gate_->Flush(0);
      if (pushed == count && draw.word[2] % 2 == 0) continue;
      while (const ReadLease lease = this->Lease(1)) {
        ASSERT_EQ(lease.windows()[0].start, next_window);
        const Gathered got = this->Gather(lease, 0, 3);
        for (std::size_t t = 0; t <= kSuiteWindow; ++t) {
          ASSERT_EQ(got.action[t * 3], TagOf(0, next_window + t, 0));
        }
        next_window += kSuiteWindow;
      }
    }
    EXPECT_GE(next_window, 120U);
    EXPECT_EQ(this->gate_->overwritten_windows(), 0);
  }
}

REGISTER_TYPED_TEST_SUITE_P(RowsSuite, WindowsLieSideBySideTimeMajor,
                            AnyRangeOfTheBatchsLanesCanBeGatheredAlone,
                            WindowOfOneLaneIsThatLaneBesideWindowsOfAll,
                            CutEpisodeBecomesLastWithoutBecomingTerminal,
                            RowsAreInMemoryWhenTheyAreCommitted,
                            WrapsAtEveryOffsetWithoutLosingOrTearingAWindow);

}  // namespace tetrion::testing
