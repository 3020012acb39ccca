#include "lib/replay/cuda/staged_gather.h"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "lib/frame/specs.h"
#include "tests/lib/replay/gathered.h"
#include "tests/lib/replay/twin_rows.h"

namespace tetrion {
namespace {

constexpr RowSpec kRow = {.record_bytes = 8, .lanes = 3, .has_mask = false};

class StagedGatherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = testing::DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

// The first byte of each record, as a number.
void Expand(const std::byte* records, std::int64_t n, int, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(records[i * 8]);
}

TEST_F(StagedGatherTest, RecordsBecomeViewsAsOnTheHost) {
  testing::TwinRows twins(kRow);
  const ReadLease lease = twins.Lease(6, 4, 3);
  const ObsSpec obs = {.record_bytes = 8, .view_floats = 1, .expand = Expand};
  std::vector<float> expected(4 * 5), got(4 * 5);
  twins.host().Gather(lease, 1, 5, {.obs = &obs, .view = expected.data()});
  twins.device().rows().Gather(lease, 1, 5, {.obs = &obs, .view = got.data()});
  EXPECT_EQ(got, expected);
}

// Every column that is asked for crosses once; nothing else does.
TEST_F(StagedGatherTest, CopiesTheBytesOfTheBatchOnceThroughPinnedMemory) {
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
TEST_F(StagedGatherTest, MemoryGrowsWithTheLargestBatch) {
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

}  // namespace
}  // namespace tetrion
