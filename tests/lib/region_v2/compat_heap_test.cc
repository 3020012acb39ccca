#include "lib/region_v2/compat_heap.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/core/philox.h"
#include "tests/lib/region_v2/compat_world.h"

namespace tetrion {
namespace {

class CompatHeapTest : public ::testing::Test {
 protected:
  CompatHeapTest() { LayOutOrAdoptCompat(memory_.span(), true); }

  static std::vector<std::byte> Payload(std::size_t bytes, int value) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
  }
  int UsedBits() const {
    int bits = 0;
    for (const std::uint8_t byte : memory_.heap().bitmap) bits += __builtin_popcount(byte);
    return bits;
  }
  const CompatBlobHeader& header(std::uint32_t block) const {
    return memory_.at<CompatBlobHeader>(kCompatHeapData + block * kCompatBlockBytes);
  }

  CompatBytes memory_;
};

TEST_F(CompatHeapTest, ChecksumIsTheOneOfZlib) {
  constexpr std::string_view kCheck = "123456789";
  EXPECT_EQ(CompatCrc32(std::as_bytes(std::span(kCheck))), 0xCBF43926U);
  EXPECT_EQ(CompatCrc32({}), 0U);
}

TEST_F(CompatHeapTest, BlobHasItsHeaderItsBlocksAndItsPayload) {
  CompatHeap heap(memory_.span());
  ASSERT_EQ(heap.Allocate(kCompatBlobTensor, Payload(32, 1)), 1);  // 64 B: one block
  ASSERT_EQ(heap.Allocate(kCompatBlobRaw, Payload(33, 2)), 2);     // 65 B: two blocks
  EXPECT_EQ(memory_.heap().bitmap[0], 0b111);
  EXPECT_EQ(memory_.heap().free_blocks, kCompatHeapBlocks - 3);
  EXPECT_EQ(memory_.heap().next_blob_id, 3U);
  const CompatBlobHeader& second = header(1);
  EXPECT_EQ(second.magic, kCompatBlobMagic);
  EXPECT_EQ(second.id, 2);
  EXPECT_EQ(second.type, kCompatBlobRaw);
  EXPECT_EQ(second.size, 33U);
  EXPECT_EQ(second.offset, 64U) << "of the block, header included";
  EXPECT_EQ(second.checksum, CompatCrc32(Payload(33, 2)));
  std::vector<std::byte> read(33);
  EXPECT_TRUE(ReadCompatBlob(memory_.span(), 2, read));
  EXPECT_EQ(read, Payload(33, 2));
}

TEST_F(CompatHeapTest, FreedBlobIsGoneAndItsBlocksAreUsedAgain) {
  CompatHeap heap(memory_.span());
  const std::uint16_t first = heap.Allocate(kCompatBlobTensor, Payload(100, 1));
  const std::uint16_t second = heap.Allocate(kCompatBlobTensor, Payload(28, 2));
  EXPECT_TRUE(heap.Free(first));
  EXPECT_FALSE(heap.Free(first)) << "twice";
  EXPECT_FALSE(heap.Free(0));
  EXPECT_FALSE(heap.Free(999));
  std::vector<std::byte> read(100);
  EXPECT_FALSE(ReadCompatBlob(memory_.span(), first, read));
  EXPECT_NE(heap.Allocate(kCompatBlobTensor, Payload(28, 3)), 0);
  EXPECT_EQ(header(0).magic, kCompatBlobMagic) << "first fit";
  read.resize(28);
  EXPECT_TRUE(ReadCompatBlob(memory_.span(), second, read));
  EXPECT_EQ(read, Payload(28, 2));
}

TEST_F(CompatHeapTest, WholeHeapFitsAndOneByteMoreDoesNot) {
  CompatHeap heap(memory_.span());
  const std::size_t all = std::size_t{kCompatHeapBlocks} * kCompatBlockBytes - 32;
  EXPECT_EQ(heap.Allocate(kCompatBlobRaw, Payload(all + 1, 1)), 0);
  EXPECT_EQ(heap.free_blocks(), kCompatHeapBlocks);
  const std::uint16_t id = heap.Allocate(kCompatBlobRaw, Payload(all, 7));
  ASSERT_NE(id, 0);
  EXPECT_EQ(heap.free_blocks(), 0U);
  EXPECT_EQ(heap.Allocate(kCompatBlobRaw, Payload(1, 1)), 0);
  std::vector<std::byte> read(all);
  EXPECT_TRUE(ReadCompatBlob(memory_.span(), id, read));
  EXPECT_EQ(read.back(), std::byte{7});
  for (std::size_t at = kCompatMeshTable; at < kCompatHeapData; at += 4)
    ASSERT_EQ(memory_.at<std::uint32_t>(at), 0U) << "the mesh table was touched";
  EXPECT_TRUE(heap.Free(id));
  EXPECT_EQ(UsedBits(), 0);
}

TEST_F(CompatHeapTest, IdsWrapPastZeroAndPastTheLiving) {
  memory_.heap().next_blob_id = 0xFFFF;
  CompatHeap heap(memory_.span());
  EXPECT_EQ(heap.Allocate(kCompatBlobRaw, Payload(4, 1)), 0xFFFF);
  EXPECT_EQ(heap.Allocate(kCompatBlobRaw, Payload(4, 2)), 1);
  for (int i = 0; i < 0xFFFE; ++i) {
    const std::uint16_t id = heap.Allocate(kCompatBlobRaw, Payload(4, 3));
    ASSERT_GT(id, 1);
    ASSERT_NE(id, 0xFFFF);
    ASSERT_TRUE(heap.Free(id));
  }
}

TEST_F(CompatHeapTest, NewHostForgetsTheBlobsOfTheOldAndGoesOnWithItsIds) {
  {
    CompatHeap heap(memory_.span());
    for (int i = 0; i < 5; ++i) ASSERT_NE(heap.Allocate(kCompatBlobRaw, Payload(200, i)), 0);
  }
  CompatHeap heap(memory_.span());
  EXPECT_EQ(UsedBits(), 0);
  EXPECT_EQ(memory_.heap().free_blocks, kCompatHeapBlocks);
  EXPECT_EQ(heap.Allocate(kCompatBlobRaw, Payload(4, 1)), 6);
}

TEST_F(CompatHeapTest, ReaderInsistsOnTheSizeAndIgnoresHeadersInsidePayloads) {
  CompatHeap heap(memory_.span());
  std::vector<std::byte> fake = Payload(128, 0);
  const CompatBlobHeader decoy = {
      .magic = kCompatBlobMagic, .id = 77, .size = 4, .offset = kCompatBlockBytes};
  std::memcpy(fake.data() + 32, &decoy, sizeof decoy);  // exactly on block 1
  ASSERT_EQ(heap.Allocate(kCompatBlobRaw, fake), 1);
  std::vector<std::byte> read(4);
  EXPECT_FALSE(ReadCompatBlob(memory_.span(), 77, read));
  EXPECT_FALSE(ReadCompatBlob(memory_.span(), 1, read)) << "another size";
}

TEST_F(CompatHeapTest, RandomLivesOfBlobsNeverOverlap) {
  CompatHeap heap(memory_.span());
  std::vector<std::pair<std::uint16_t, std::vector<std::byte>>> alive;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const PhiloxBlock draw = PhiloxDraw(11, 0, i, PhiloxPurpose::kSampler);
    if (alive.size() < 12 && draw.word[0] % 2 == 0) {
      const auto payload = Payload(1 + draw.word[1] % 300, static_cast<int>(draw.word[2] % 256));
      const std::uint16_t id = heap.Allocate(kCompatBlobRaw, payload);
      ASSERT_NE(id, 0);
      alive.emplace_back(id, payload);
    } else if (!alive.empty()) {
      const std::size_t which = draw.word[1] % alive.size();
      ASSERT_TRUE(heap.Free(alive[which].first));
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
    }
    for (const auto& [id, payload] : alive) {
      std::vector<std::byte> read(payload.size());
      ASSERT_TRUE(ReadCompatBlob(memory_.span(), id, read));
      ASSERT_EQ(read, payload);
    }
    ASSERT_EQ(static_cast<std::uint32_t>(UsedBits()), kCompatHeapBlocks - heap.free_blocks());
  }
}

}  // namespace
}  // namespace tetrion
