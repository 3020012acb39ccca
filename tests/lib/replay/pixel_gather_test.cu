#include "lib/replay/pixel_gather.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/lib/replay/gathered.h"
#include "tests/lib/replay/twin_rows.h"

namespace tetrion {
namespace {

using testing::TwinRows;

// Three lanes: pictures begin at any multiple of 32 bytes. The windows of TwinRows wrap.
constexpr RowSpec kRow = {.record_bytes = PixelGather::kRecordBytes, .lanes = 3, .has_mask = false};
constexpr int kRows = 4;

class PixelGatherTest : public ::testing::TestWithParam<UnpackImpl> {
 protected:
  void SetUp() override {
    if (const char* why = testing::DeviceMemory::Missing()) GTEST_SKIP() << why;
    twins = std::make_unique<TwinRows>(kRow);
  }
  // Pictures of the lanes, as the host gathers them.
  std::vector<std::byte> Records(const ReadLease& lease, int first_lane, int lanes) {
    testing::Gathered got(kRow, kRows, lanes);
    twins->host().Gather(lease, first_lane, lanes, got.Columns());
    return got.record;
  }
  template <typename Pixel>
  std::vector<Pixel> Download(const cuda::DeviceBuffer& pixels) {
    std::vector<Pixel> values(pixels.bytes() / sizeof(Pixel));
    cuda::CopyToHost(values.data(), pixels.data<Pixel>(), pixels.bytes(), cuda::CopyPurpose::kBatch,
                     twins->device().reader());
    return values;
  }
  static float PixelAt(const std::vector<std::byte>& records, std::size_t pixel) {
    const auto byte = static_cast<unsigned>(records[pixel / 4]);
    return static_cast<float>(byte >> pixel % 4 * 2 & 3U) / 3.0F;
  }

  std::unique_ptr<TwinRows> twins;
};

TEST_P(PixelGatherTest, EveryByteBecomesItsFourShadesOverThree) {
  const ReadLease lease = twins->Lease(4, kRows, 9);
  PixelGather gather(twins->device().rows(), GetParam());
  const int all = twins->host().BatchLanes(lease);
  for (const int first : {0, 1}) {
    const int lanes = all - 2 * first;
    const std::vector<std::byte> records = Records(lease, first, lanes);
    ASSERT_EQ(std::set<std::byte>(records.begin(), records.end()).size(), 256U);
    const cuda::DeviceBuffer out(twins->device().device(), records.size() * 4 * sizeof(float),
                                 "pixels");
    gather.Gather(lease, first, lanes, out.data<float>());
    const std::vector<float> pixels = Download<float>(out);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) wrong += pixels[i] != PixelAt(records, i);
    EXPECT_EQ(wrong, 0U) << "of " << pixels.size();
  }
}

TEST_P(PixelGatherTest, Bf16IsTheNearestToThose) {
  const ReadLease lease = twins->Lease(3, kRows, 4);
  PixelGather gather(twins->device().rows(), GetParam());
  const int lanes = twins->host().BatchLanes(lease);
  const std::vector<std::byte> records = Records(lease, 0, lanes);
  const cuda::DeviceBuffer out(twins->device().device(), records.size() * 4 * 2, "pixels");
  gather.Gather(lease, 0, lanes, out.data<std::uint16_t>());
  const std::vector<std::uint16_t> pixels = Download<std::uint16_t>(out);
  constexpr std::uint16_t kNearest[] = {0, 0x3EAB, 0x3F2B, 0x3F80};  // 0, 1/3, 2/3, 1
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    wrong += pixels[i] != kNearest[static_cast<int>(PixelAt(records, i) * 3.0F + 0.5F)];
  }
  EXPECT_EQ(wrong, 0U) << "of " << pixels.size();
}

INSTANTIATE_TEST_SUITE_P(Impls, PixelGatherTest,
                         ::testing::Values(UnpackImpl::kLut, UnpackImpl::kKernel));

}  // namespace
}  // namespace tetrion
