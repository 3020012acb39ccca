#include "lib/replay/cuda/staged_batch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "lib/frame/specs.h"
#include "tests/lib/replay/gathered.h"
#include "tests/lib/replay/latents_suite.h"
#include "tests/lib/replay/twin_rows.h"

namespace tetrion {
namespace {

constexpr RowSpec kRow = {.record_bytes = 8, .lanes = 3, .has_mask = false};

class StagedBatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = testing::DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

// The first byte of each record, as a number.
void Expand(const std::byte* records, std::int64_t n, int, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(records[i * 8]);
}

// The latents of a device as a trainer on the host has them.
class StagedLatents {
 public:
  StagedLatents(const RowSpec& row, int shards, int capacity_rows, const LatentSpec& spec)
      : memory_(row, shards, capacity_rows, spec) {}
  static const char* Missing() { return testing::DeviceMemory::Missing(); }
  DeviceRows& rows() { return memory_.rows(); }
  void Close(ReadLease& lease) { lease.CloseAfter(rows().LastRead()); }
  void ScatterLatents(const ReadLease& lease, const BatchPart& part, testing::LatentBatch& in) {
    rows().ScatterLatents(lease, part, in.Columns());
    std::fill(in.deter.begin(), in.deter.end(), 0);  // read already
    std::fill(in.stoch.begin(), in.stoch.end(), 0);
  }
  void GatherLatents(const ReadLease& lease, const BatchPart& part, testing::LatentBatch& got) {
    rows().GatherLatents(lease, part, got.Columns());
  }

 private:
  testing::DeviceMemory memory_;
};

TEST_F(StagedBatchTest, RecordsBecomeViewsAsOnTheHost) {
  testing::TwinRows twins(kRow);
  const ReadLease lease = twins.Lease(6, 4, 3);
  const ObsSpec obs = {.record_bytes = 8, .view_floats = 1, .expand = Expand};
  std::vector<float> expected(4 * 5), got(4 * 5);
  twins.host().Gather(lease, 1, 5, {.obs = &obs, .view = expected.data()});
  twins.device().rows().Gather(lease, 1, 5, {.obs = &obs, .view = got.data()});
  EXPECT_EQ(got, expected);
}

// Every column that is asked for crosses once; nothing else does.
TEST_F(StagedBatchTest, CopiesTheBytesOfTheBatchOnceThroughPinnedMemory) {
  testing::TwinRows twins(kRow);
  const ReadLease lease = twins.Lease(2, 5, 3);
  const int lanes = twins.host().BatchLanes(lease);
  const auto cells = static_cast<std::size_t>(5 * lanes);
  testing::Gathered got(kRow, 5, lanes);
  RowColumns out = got.Columns();
  out.reward = nullptr;
  const cuda::HostCopyGuard guard;
  twins.device().rows().Gather(lease, 0, lanes, out);
  const cuda::Activity seen = guard.Seen();
  const auto direction = cuda::CopyDirection::kDeviceToHost;
  EXPECT_EQ(seen.Of(direction, cuda::MemoryKind::kPinned, cuda::CopyPurpose::kBatch).bytes,
            cells * (8 + 4 + 4 + 1 + 4));
  EXPECT_EQ(seen.Of(direction, cuda::MemoryKind::kPageable, cuda::CopyPurpose::kBatch).copies, 0U);
  EXPECT_EQ(seen.waits, 1U);
}

// A larger batch after a smaller one, a smaller one after it.
TEST_F(StagedBatchTest, MemoryGrowsWithTheLargestBatch) {
  testing::TwinRows twins(kRow);
  for (const int windows : {1, 40, 2, 7}) {
    const ReadLease lease = twins.Lease(windows, 6, 11);
    const int lanes = twins.host().BatchLanes(lease);
    testing::Gathered expected(kRow, 6, lanes), got(kRow, 6, lanes);
    twins.host().Gather(lease, 0, lanes, expected.Columns());
    twins.device().rows().Gather(lease, 0, lanes, got.Columns());
    EXPECT_EQ(got.record, expected.record);
    EXPECT_EQ(got.action, expected.action);
    EXPECT_EQ(got.flags, expected.flags);
  }
}

// Up in a gather, down in a write-back, the bytes of each once; only what they wait for is the
// reader's stream.
TEST_F(StagedBatchTest, CopiesTheBytesOfLatentsOnceEitherWay) {
  constexpr LatentSpec kSpec = {.deter = 8, .stoch = 16};
  testing::LatentReplay<StagedLatents> replay(kSpec);
  const BatchPart part = {.first_lane = 1, .lanes = 3, .first_row = 1, .rows = 4};
  constexpr std::size_t kCells = 3 * 4;
  const auto pinned = cuda::MemoryKind::kPinned;
  const auto purpose = cuda::CopyPurpose::kBatch;
  const cuda::HostCopyGuard down;
  replay.Scatter(part, testing::LatentBatch(kSpec, kCells));
  EXPECT_EQ(down.Seen().Of(cuda::CopyDirection::kHostToDevice, pinned, purpose).bytes,
            kCells * (8 * 2 + 16));
  EXPECT_EQ(down.Seen().waits, 1U) << "for the write-back before, not for this one";
  const cuda::HostCopyGuard up;
  static_cast<void>(replay.Gather(part));
  EXPECT_EQ(up.Seen().Of(cuda::CopyDirection::kDeviceToHost, pinned, purpose).bytes,
            kCells * (8 * 2 + 16 + 1));
  EXPECT_EQ(up.Seen().waits, 1U);
  replay.Close();
}

using StagedBatchDeathTest = StagedBatchTest;

TEST_F(StagedBatchDeathTest, RowsWithoutLatentsAreABug) {
  // Made here: in the child that dies CUDA's runtime can begin nothing.
  testing::DeviceMemory memory(kRow, 1, 16);
  EXPECT_DEATH(memory.rows().GatherLatents({}, {}, {}), "without latents");
}

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Staged, LatentsSuite, StagedLatents);
}  // namespace testing

}  // namespace tetrion
