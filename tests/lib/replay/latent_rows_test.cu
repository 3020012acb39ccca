#include "lib/replay/latent_rows.h"

#include <gtest/gtest.h>

#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/latents_suite.h"

namespace tetrion {
namespace {

class DeviceLatents {
 public:
  DeviceLatents(const RowSpec& row, int shards, int capacity_rows, const LatentSpec& spec)
      : spec_(spec), memory_(row, shards, capacity_rows, spec) {}
  static const char* Missing() { return testing::DeviceMemory::Missing(); }
  DeviceRows& rows() { return memory_.rows(); }
  void Close(ReadLease& lease) { lease.CloseAfter(memory_.rows().LastRead()); }

  void ScatterLatents(const ReadLease& lease, const BatchPart& part,
                      const testing::LatentBatch& in) {
    const Columns columns(memory_, spec_, in.valid.size());
    const LatentColumns out = columns.all();
    const auto purpose = cuda::CopyPurpose::kSetUp;
    cuda::CopyToDevice(out.deter, in.deter.data(), in.deter.size() * 2, purpose, memory_.reader());
    cuda::CopyToDevice(out.stoch, in.stoch.data(), in.stoch.size(), purpose, memory_.reader());
    memory_.rows().ScatterLatentsOnDevice(lease, part, out);
  }
  void GatherLatents(const ReadLease& lease, const BatchPart& part, testing::LatentBatch& got) {
    const std::size_t cells = got.valid.size();
    const Columns columns(memory_, spec_, cells);
    const LatentColumns from = columns.all();
    memory_.rows().GatherLatentsOnDevice(lease, part, from);
    const auto purpose = cuda::CopyPurpose::kBatch;
    cuda::CopyToHost(got.deter.data(), from.deter, got.deter.size() * 2, purpose, memory_.reader());
    cuda::CopyToHost(got.stoch.data(), from.stoch, got.stoch.size(), purpose, memory_.reader());
    cuda::CopyToHost(got.valid.data(), from.valid, cells, purpose, memory_.reader());
  }

 private:
  struct Columns {
    Columns(testing::DeviceMemory& memory, const LatentSpec& spec, std::size_t cells)
        : deter(memory.device(), cells * spec.deter * 2, "deter"),
          stoch(memory.device(), cells * spec.stoch, "stoch"),
          valid(memory.device(), cells, "valid") {}
    LatentColumns all() const {
      return {deter.data<std::uint16_t>(), stoch.data<std::uint8_t>(), valid.data<std::uint8_t>()};
    }
    cuda::DeviceBuffer deter, stoch, valid;
  };

  const LatentSpec spec_;
  testing::DeviceMemory memory_;
};

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Device, LatentsSuite, DeviceLatents);
}  // namespace testing

namespace {

TEST(LatentRowsDeathTest, WriteBackToARowThatAnotherHasReplacedIsABug) {
  if (const char* why = DeviceLatents::Missing()) GTEST_SKIP() << why;
  testing::LatentReplay<DeviceLatents> replay({.deter = 3, .stoch = 5});
  replay.WriteUnasked(1, 12 + testing::kLatentCapacity);
  EXPECT_DEATH(replay.rows().ScatterLatentsOnDevice(replay.lease(),
                                                    {.lanes = 4, .rows = testing::kLatentRows}, {}),
               "another has replaced");
  replay.Close();
}

}  // namespace
}  // namespace tetrion
