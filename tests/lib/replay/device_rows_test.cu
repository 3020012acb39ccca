#include "lib/replay/device_rows.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/host_copy_guard.h"
#include "lib/cuda/launch.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/rows_suite.h"
#include "tests/lib/replay/tagged_rows.cuh"
#include "tests/lib/replay/twin_rows.h"

namespace tetrion {
namespace {

using testing::DeviceMemory;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TwinRows;

constexpr RowSpec kRow = {.record_bytes = 1440, .lanes = 3, .has_mask = true};

class DeviceRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

// All columns of a gather in device memory, the record `shift` bytes behind an aligned address.
class Block {
 public:
  Block(const cuda::Device& device, const RowSpec& row, std::size_t cells, std::size_t shift)
      : record_(device, cells * row.record_bytes + shift, "records"), shift_(shift) {
    for (cuda::DeviceBuffer& column : columns_) {
      column = cuda::DeviceBuffer(device, cells * sizeof(std::uint64_t), "a column");
    }
  }
  DeviceColumns columns() const {
    return {.record = record_.data<std::byte>() + shift_,
            .action = columns_[0].data<std::int32_t>(),
            .log_prob = columns_[1].data<float>(),
            .mask = columns_[2].data<std::uint64_t>(),
            .reward = columns_[3].data<float>(),
            .flags = columns_[4].data<std::uint8_t>(),
            .cont = columns_[5].data<float>(),
            .episode_id = columns_[6].data<std::int32_t>()};
  }

 private:
  cuda::DeviceBuffer record_;
  const std::size_t shift_;
  cuda::DeviceBuffer columns_[7];
};

// [cells] values that the reader stream has written.
template <typename T>
std::vector<T> Download(DeviceMemory& memory, const T* from, std::size_t count) {
  std::vector<T> values(count);
  cuda::CopyToHost(values.data(), from, count * sizeof(T), cuda::CopyPurpose::kBatch,
                   memory.reader());
  return values;
}

template <typename T>
void ExpectSameBytes(const std::vector<T>& got, const std::vector<T>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)), 0) << what;
}

// Lanes [first, first + lanes) of the lease, from the device and from the host.
void ExpectEqualGathers(TwinRows& twins, const ReadLease& lease, int first, int lanes,
                        std::size_t shift) {
  const RowSpec& row = twins.host().layout().spec;
  const std::size_t cells =
      static_cast<std::size_t>(lease.rows()) * static_cast<std::size_t>(lanes);
  testing::Gathered expected(row, lease.rows(), lanes);
  twins.host().Gather(lease, first, lanes, expected.Columns());
  DeviceMemory& device = twins.device();
  const Block block(device.device(), row, cells, shift);
  const DeviceColumns out = block.columns();
  device.rows().GatherOnDevice(lease, first, lanes, out);
  ExpectSameBytes(Download(device, out.record, cells * row.record_bytes), expected.record,
                  "record");
  ExpectSameBytes(Download(device, out.action, cells), expected.action, "action");
  ExpectSameBytes(Download(device, out.log_prob, cells), expected.log_prob, "log_prob");
  ExpectSameBytes(Download(device, out.mask, cells), expected.mask, "mask");
  ExpectSameBytes(Download(device, out.reward, cells), expected.reward, "reward");
  ExpectSameBytes(Download(device, out.flags, cells), expected.flags, "flags");
  ExpectSameBytes(Download(device, out.cont, cells), expected.cont, "cont");
}

// Records that are copied by 16, 4 and 1 bytes at once, more windows than one launch takes, a part
// of the batch's lanes, windows around the end of the ring.
TEST_F(DeviceRowsTest, GathersWhatItsTwinOnTheHostGathers) {
  const struct {
    std::uint32_t record_bytes;
    std::size_t shift;  // of the caller's column
  } cases[] = {{64, 0}, {64, 4}, {20, 0}, {20, 2}, {7, 0}};
  for (const auto& [record_bytes, shift] : cases) {
    SCOPED_TRACE(record_bytes);
    TwinRows twins({.record_bytes = record_bytes, .lanes = 5, .has_mask = true});
    for (const int windows : {1, 3, 300, 600}) {
      const ReadLease lease = twins.Lease(windows, 9, record_bytes);
      const int lanes = twins.host().BatchLanes(lease);
      ExpectEqualGathers(twins, lease, 0, lanes, shift);
      ExpectEqualGathers(twins, lease, lanes / 3, (lanes + 1) / 2, shift);
    }
  }
}

TEST_F(DeviceRowsTest, GathersPicturesOfAnOddNumberOfLanes) {
  TwinRows twins(kRow);
  const ReadLease lease = twins.Lease(4, 5, 7);
  ExpectEqualGathers(twins, lease, 0, twins.host().BatchLanes(lease), 0);
}

TEST_F(DeviceRowsTest, ColumnsLeftOutStayAsTheyAreAndVersionsGoByWindow) {
  TwinRows twins(kRow);
  const ReadLease lease = twins.Lease(200, 3, 5);
  DeviceMemory& device = twins.device();
  const auto lanes = static_cast<std::size_t>(device.rows().BatchLanes(lease));
  const cuda::DeviceBuffer actions(device.device(), 3 * lanes * sizeof(std::int32_t), "actions");
  device.rows().GatherOnDevice(lease, 0, static_cast<int>(lanes),
                               {.action = actions.data<std::int32_t>()});
  testing::Gathered expected(kRow, 3, static_cast<int>(lanes));
  twins.host().Gather(lease, 0, static_cast<int>(lanes), expected.Columns());
  ExpectSameBytes(Download(device, actions.data<std::int32_t>(), 3 * lanes), expected.action,
                  "action");

  const cuda::DeviceBuffer versions(device.device(), 3 * 200 * sizeof(std::uint32_t), "versions");
  device.rows().GatherVersionsOnDevice(lease, versions.data<std::uint32_t>());
  std::vector<std::uint32_t> by_host(3 * 200);
  twins.host().GatherVersions(lease, by_host.data());
  EXPECT_EQ(Download(device, versions.data<std::uint32_t>(), 3 * 200), by_host);
}

// Neither shards nor columns overlap, and none moves while the writer laps the ring.
TEST_F(DeviceRowsTest, EveryColumnIsAlignedAndStaysWhereItIsForLife) {
  constexpr int kShards = 3, kCapacity = 12;
  DeviceMemory memory(kRow, kShards, kCapacity);
  ReplayGate gate({.shards = kShards, .capacity_rows = kCapacity, .commit_stride = 4},
                  std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited());
  const auto addresses = [&] {
    std::vector<std::uintptr_t> found;
    for (int shard = 0; shard < kShards; ++shard) {
      const RowSlots slots = memory.rows().Slots(shard);
      for (const void* column :
           {static_cast<const void*>(slots.header), static_cast<const void*>(slots.record),
            static_cast<const void*>(slots.action), static_cast<const void*>(slots.log_prob),
            static_cast<const void*>(slots.mask), static_cast<const void*>(slots.reward),
            static_cast<const void*>(slots.flags), static_cast<const void*>(slots.cont),
            static_cast<const void*>(slots.episode_id)}) {
        found.push_back(reinterpret_cast<std::uintptr_t>(column));
      }
    }
    return found;
  };
  const std::vector<std::uintptr_t> at_first = addresses();
  for (const std::uintptr_t address : at_first) EXPECT_EQ(address % 256, 0U);
  for (std::uint64_t row = 0; row < 4 * kCapacity; row += 4) {
    for (int shard = 0; shard < kShards; ++shard) {
      const Chunk chunk = gate.Acquire(shard, 4, 0);
      ASSERT_EQ(chunk.rows, 4);
      cuda::Launch(memory.writer(), testing::WriteTaggedRows, 1, 32, 0, memory.rows().Slots(shard),
                   chunk.first, 4, shard * 1'000'000);
      gate.Commit(chunk, memory.rows().Written());
    }
    EXPECT_EQ(addresses(), at_first);
  }
  for (int shard = 0; shard < kShards; ++shard) {
    for (std::uint64_t row = 3 * kCapacity; row < 4 * kCapacity; ++row) {
      EXPECT_EQ(memory.Action(shard, row, 2),
                shard * 1'000'000 + static_cast<std::int32_t>(row) * 10 + 2);
    }
  }
}

// Rows of one partial chunk after the other, written by copies from the host and by kernels.
TEST_F(DeviceRowsTest, CopiesTheBytesOfEachRowOnceAndGathersWithoutTheHost) {
  DeviceMemory memory(kRow, 1, 16);
  ReplayGate gate({.capacity_rows = 16, .commit_stride = 8},
                  std::make_unique<testing::AnyWindowSelector>(6), Limiter::Unlimited());
  const RowLayout& layout = memory.rows().layout();
  const cuda::PinnedBuffer rows(8 * layout.row_bytes, "rows");
  std::memset(rows.data<std::byte>(), 0, rows.bytes());
  const Block block(memory.device(), kRow, 6 * 3, 0);
  const std::uint64_t row_bytes = sizeof(RowHeader) + 3 * (1440 + 4 + 4 + 8 + 4 + 1 + 4 + 4);
  const cuda::AllowedCopies allowed[] = {{cuda::CopyDirection::kHostToDevice,
                                          cuda::MemoryKind::kPinned, cuda::CopyPurpose::kIngest,
                                          8 * row_bytes}};
  const cuda::HostCopyGuard guard;
  int pushed = 0;
  ASSERT_EQ(PushRows(gate, memory.rows(), 0, rows.data<std::byte>(), 5, 0, pushed),
            AcquireResult::kAcquired);
  ASSERT_EQ(
      PushRows(gate, memory.rows(), 0, rows.data<std::byte>() + 5 * layout.row_bytes, 3, 0, pushed),
      AcquireResult::kAcquired);
  ReadLease lease = gate.OpenLease(1, 6, 0);
  ASSERT_TRUE(lease);
  memory.rows().GatherOnDevice(lease, 0, 3, block.columns());
  lease.CloseAfter(memory.rows().LastRead());
  EXPECT_THAT(guard.Violations(allowed), IsEmpty());
  memory.reader().Synchronize();
}

TEST_F(DeviceRowsTest, TooLittleMemoryIsSaidWithTheRowsThatWouldFit) {
  const cuda::Device device(0);
  cuda::Stream writer(device, "writer"), reader(device, "reader");
  const std::size_t free = device.Memory().free_bytes;
  const int capacity = static_cast<int>(free / (3 * 1440) + 1);
  try {
    const DeviceRows rows(device, kRow, 1, capacity, writer, reader);
    ADD_FAILURE() << "more than there is";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_THAT(error.what(),
                HasSubstr("a replay of 1 shards x " + std::to_string(capacity) + " rows needs "));
    EXPECT_THAT(error.what(), HasSubstr("of which " + std::to_string(free) + " are free: "));
    EXPECT_THAT(error.what(), HasSubstr(" rows a shard would fit"));
  }
}

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Device, RowsSuite, DeviceMemory);
}  // namespace testing

}  // namespace tetrion
