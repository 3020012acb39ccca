#include "lib/wire/rows_packing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/core/philox.h"

namespace tetrion::wire {
namespace {

std::vector<std::byte> Noise(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::byte>(PhiloxDraw(3, i, 0, PhiloxPurpose::kSampler).word[0]);
  }
  return out;
}

TEST(RowsPackingTest, RowsComeBackAsTheyWent) {
  RowsPacker packer;
  std::vector<std::byte> rows(100'000, std::byte{7});
  std::vector<std::byte> packed;
  for (int time = 0; time < 3; ++time) {
    rows[static_cast<std::size_t>(time)] = std::byte{1};
    ASSERT_EQ(packer.Pack(rows, packed), RowsPacking::kZstd);
    EXPECT_LT(packed.size(), rows.size() / 100);
    std::vector<std::byte> again(rows.size());
    ASSERT_TRUE(packer.Unpack(RowsPacking::kZstd, packed, again));
    EXPECT_EQ(again, rows);
  }
}

TEST(RowsPackingTest, RowsThatDoNotShrinkAreSentAsTheyAre) {
  RowsPacker packer;
  std::vector<std::byte> packed;
  EXPECT_EQ(packer.Pack({}, packed), RowsPacking::kNone);
  EXPECT_EQ(packer.Pack(Noise(1), packed), RowsPacking::kNone);
  const std::vector<std::byte> noise = Noise(4096);
  EXPECT_EQ(packer.Pack(noise, packed), RowsPacking::kNone);
  std::vector<std::byte> again(noise.size());
  ASSERT_TRUE(packer.Unpack(RowsPacking::kNone, noise, again));
  EXPECT_EQ(again, noise);
}

TEST(RowsPackingTest, AnotherSizeThanTheRowsIsRefused) {
  RowsPacker packer;
  const std::vector<std::byte> rows(4096);
  std::vector<std::byte> packed, out;
  ASSERT_EQ(packer.Pack(rows, packed), RowsPacking::kZstd);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4095}, std::size_t{4097}}) {
    out.assign(bytes, std::byte{9});
    EXPECT_FALSE(packer.Unpack(RowsPacking::kZstd, packed, out)) << bytes;
    EXPECT_FALSE(packer.Unpack(RowsPacking::kNone, rows, out)) << bytes;
  }
}

// Property: no payload makes Unpack write outside `out`, or end in anything but a verdict.
// AddressSanitizer watches.
TEST(RowsPackingTest, MutatedPayloadsAreRefusedOrHaveTheSize) {
  RowsPacker packer;
  std::vector<std::byte> rows(4096);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i / 16);
  std::vector<std::byte> packed, out(rows.size());
  ASSERT_EQ(packer.Pack(rows, packed), RowsPacking::kZstd);
  int refused = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::vector<std::byte> payload = packed;
    const PhiloxBlock draw = PhiloxDraw(5, i, 0, PhiloxPurpose::kSampler);
    payload[draw.word[0] % payload.size()] ^= static_cast<std::byte>(1U << (draw.word[1] % 8));
    if (draw.word[2] % 4 == 0) payload.resize(draw.word[3] % payload.size());
    if (!packer.Unpack(RowsPacking::kZstd, payload, out)) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tetrion::wire
