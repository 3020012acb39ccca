#include "lib/replay/host_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/lib/replay/host_memory.h"
#include "tests/lib/replay/rows_suite.h"

namespace tetrion {
namespace {

using testing::HostMemory;

class HostRowsTest : public testing::RowsSuite<HostMemory> {};

}  // namespace

namespace testing {
using HostMemories = ::testing::Types<HostMemory, HostLaneMemory>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, RowsSuite, HostMemories);
}  // namespace testing

namespace {

TEST_F(HostRowsTest, AddressesAreAlignedAndNeverMove) {
  Build(std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited(), 1);
  const HostRows& rows = memory_->rows();
  const std::byte* const first = rows.Row(0, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0U);
  ASSERT_EQ(Push(0, 1, 2 * testing::kSuiteCapacity), 2 * testing::kSuiteCapacity);
  EXPECT_EQ(rows.Row(0, testing::kSuiteCapacity), first);
  EXPECT_EQ(rows.Row(0, testing::kSuiteCapacity + 1), first + rows.layout().row_bytes);
  EXPECT_EQ(rows.Row(1, 0), first + testing::kSuiteCapacity * rows.layout().row_bytes);
  EXPECT_EQ(rows.memory_bytes(), 2 * testing::kSuiteCapacity * rows.layout().row_bytes);
}

TEST_F(HostRowsTest, RowsOfAChunkCanBeFilledInPlace) {
  auto& selector = Build(std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited(), 0);
  const RowLayout& layout = memory_->rows().layout();
  for (int i = 0; i < 2; ++i) {
    const Chunk chunk = gate_->Acquire(0, testing::kSuiteStride, 0);
    for (std::uint64_t row = chunk.first; row < chunk.first + testing::kSuiteStride; ++row) {
      const auto tagged = testing::TaggedRow(layout, 0, row);
      std::memcpy(memory_->rows().Row(0, row), tagged.data(), tagged.size());
    }
    gate_->Commit(chunk);
  }
  selector.windows = {{.shard = 0, .start = 3}};
  const ReadLease lease = Lease(1);
  EXPECT_EQ(Gather(lease, 1, 1).action[0], testing::TagOf(0, 3, 1));
}

// Doubles every number of a record.
void Expand(const std::byte* records, std::int64_t n, int, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t tag = 0;
    std::memcpy(&tag, records + i * testing::kSuiteRow.record_bytes, sizeof tag);
    out[i] = 2.0F * static_cast<float>(tag);
  }
}

TEST_F(HostRowsTest, RecordsAreExpandedIntoViewsAndColumnsLeftOutStayAsTheyAre) {
  auto& selector = Build(std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited(),
                         testing::kSuiteCapacity);
  selector.windows = {{.shard = 1, .start = 2}, {.shard = 0, .start = 5, .lane = 1}};
  const ReadLease lease = Lease(2);
  const ObsSpec obs = {.record_bytes = 8, .view_floats = 1, .expand = Expand};
  std::vector<float> view(5 * 2);
  memory_->rows().Gather(lease, 2, 2, {.obs = &obs, .view = view.data()});
  for (std::size_t t = 0; t < 5; ++t) {
    EXPECT_EQ(view[t * 2], 2.0F * static_cast<float>(testing::TagOf(1, 2 + t, 2)));
    EXPECT_EQ(view[t * 2 + 1], 2.0F * static_cast<float>(testing::TagOf(0, 5 + t, 1)));
  }
}

// Rows of a replay that no cache holds are written by other instructions, around the end as well.
TEST(LargeHostRowsTest, ChunksArriveWholeInAReplayLargerThanTheCaches) {
  constexpr RowSpec kRow = {.record_bytes = 1440, .lanes = 64, .has_mask = false};
  constexpr int kCapacity = 1024, kStride = 8;
  ReplayGate gate({.shards = 1, .capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited());
  HostRows memory(kRow, 1, kCapacity);
  ASSERT_GT(memory.memory_bytes(), std::uint64_t{80} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.Row(0, 0)) % (2 << 20), 0U) << "huge pages";
  std::vector<std::byte> source(kStride * memory.layout().row_bytes + 1);
  const auto byte_of = [](std::uint64_t row, std::size_t at) {
    return static_cast<std::byte>((row * 31 + at * 7 + at / 256) & 0xff);
  };
  for (std::uint64_t first = 0; first < kCapacity + 2 * kStride; first += kStride) {
    for (std::size_t at = 1; at < source.size(); ++at) source[at] = byte_of(first, at);
    int pushed = 0;  // from an odd address: only the replay's side is aligned
    ASSERT_EQ(PushRows(gate, memory, 0, source.data() + 1, kStride, 0, pushed),
              AcquireResult::kAcquired);
    const std::byte* const chunk = memory.Row(0, first);
    ASSERT_EQ(std::memcmp(chunk, source.data() + 1, source.size() - 1), 0) << "rows from " << first;
  }
  const std::size_t chunk_bytes = source.size() - 1;
  for (std::size_t at = 1; at < source.size(); ++at) source[at] = byte_of(2 * kStride, at);
  EXPECT_EQ(std::memcmp(memory.Row(0, 2 * kStride), source.data() + 1, chunk_bytes), 0)
      << "the chunk after the overwritten ones is another one";
}

TEST_F(HostRowsTest, CheckInvariantsNamesWhatIsWrong) {
  Build(std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited(), 0);
  const RowLayout& layout = memory_->rows().layout();
  const auto push = [&](std::uint64_t row, std::int32_t episode, std::uint8_t flags) {
    auto bytes = testing::TaggedRow(layout, 0, row);
    const RowView view(layout, bytes.data());
    view.episode_id[0] = episode;
    view.flags[0] = flags;
    int pushed = 0;
    EXPECT_EQ(PushRows(*gate_, memory_->rows(), 0, bytes.data(), 1, 0, pushed),
              AcquireResult::kAcquired);
  };
  for (std::uint64_t row = 0; row < 8; ++row) {
    const std::uint8_t flags = row == 4 ? kIsLast : row == 5 ? kIsFirst : 0;
    push(row, row >= 5 ? 1 : 0, flags);
  }
  EXPECT_EQ(memory_->rows().CheckInvariants(0, 0, 8), nullptr);
  push(8, 0, 0);  // the episode id goes back without is_first
  EXPECT_STREQ(memory_->rows().CheckInvariants(0, 0, 9),
               "is_first and episode_id do not move together");
}

}  // namespace
}  // namespace tetrion
