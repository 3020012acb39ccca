#include "lib/weights/weights_slot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

namespace tetrion {
namespace {

constexpr std::uint64_t kMaxBytes = 1000;
using Blob = std::vector<std::byte>;

// Zeroed memory of exactly the slots' size.
class SlotMemory {
 public:
  explicit SlotMemory(std::uint64_t max_blob_bytes)
      : memory_(static_cast<std::byte*>(
            std::aligned_alloc(kCacheLinePairBytes, WeightsSlotBytes(max_blob_bytes)))) {
    std::memset(memory_.get(), 0, WeightsSlotBytes(max_blob_bytes));
  }
  std::byte* get() const { return memory_.get(); }
  WeightsBlock& block() const { return *reinterpret_cast<WeightsBlock*>(memory_.get()); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// A blob every byte of which follows from its version.
Blob TaggedBlob(std::uint32_t version, std::size_t bytes) {
  Blob blob(bytes);
  for (std::size_t i = 0; i < bytes; ++i) blob[i] = static_cast<std::byte>(version * 31 + i);
  return blob;
}

// As if `version` had been publication number `publication`, which is not of slot 1.
void PublishAs(const SlotMemory& memory, std::uint32_t publication, std::uint32_t version) {
  WeightsSlotWriter(memory.get(), kMaxBytes).Publish(version, TaggedBlob(version, 100));
  WeightsBlock& block = memory.block();
  const std::uint32_t slot = publication % kWeightsSlots;
  block.slot[slot].bytes.store(block.slot[1].bytes.load());
  block.slot[slot].hash.store(block.slot[1].hash.load());
  block.slot[slot].version.store(version);
  block.slot[slot].stamp.store(2 * std::uint64_t{publication});
  std::byte* const blobs = memory.get() + sizeof(WeightsBlock);
  const std::uint64_t room = WeightsRoomBytes(kMaxBytes);
  std::memcpy(blobs + slot * room, blobs + room, room);
  block.newest.store(std::uint64_t{publication} << 32 | version);
}

TEST(WeightsSlotTest, NothingIsThereBeforeTheFirstPublication) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  Blob out;
  std::uint32_t version = 7;
  EXPECT_EQ(reader.Read(out, version), WeightsRead::kNothing);
  EXPECT_EQ(reader.NewestVersion(), 0U);
  EXPECT_EQ(version, 7U);
}

TEST(WeightsSlotTest, EachPublicationIsReadOnceByEachReader) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  WeightsSlotReader first(memory.get(), kMaxBytes);
  WeightsSlotReader second(memory.get(), kMaxBytes);
  writer.Publish(5, TaggedBlob(5, 100));
  for (WeightsSlotReader* reader : {&first, &second}) {
    Blob out;
    std::uint32_t version = 0;
    ASSERT_EQ(reader->Read(out, version), WeightsRead::kFresh);
    EXPECT_EQ(version, 5U);
    EXPECT_EQ(out, TaggedBlob(5, 100));
    EXPECT_EQ(reader->Read(out, version), WeightsRead::kNothing);
  }
}

TEST(WeightsSlotTest, EverySizeUpToTheLargestSurvives) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  for (std::uint32_t bytes = 0; bytes <= kMaxBytes; ++bytes) {
    writer.Publish(bytes + 1, TaggedBlob(bytes, bytes));
    Blob out;
    std::uint32_t version = 0;
    ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
    ASSERT_EQ(out, TaggedBlob(bytes, bytes));
  }
}

TEST(WeightsSlotTest, SlowReaderGetsTheNewestOnly) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  for (std::uint32_t version = 1; version <= 11; ++version) {
    writer.Publish(version, TaggedBlob(version, 64));
  }
  Blob out;
  std::uint32_t version = 0;
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  EXPECT_EQ(version, 11U);
  EXPECT_EQ(reader.NewestVersion(), 11U);
}

TEST(WeightsSlotTest, NextWriterGoesOnAfterTheLastOne) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  Blob out;
  std::uint32_t version = 0;
  for (std::uint32_t v = 1; v <= 6; ++v) {
    WeightsSlotWriter writer(memory.get(), kMaxBytes);
    EXPECT_EQ(writer.NewestVersion(), (v - 1) * 1000);
    writer.Publish(v * 1000, TaggedBlob(v, 32));
    ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
    EXPECT_EQ(version, v * 1000);
  }
}

TEST(WeightsSlotTest, WriterKilledInTheNextSlotLeavesTheNewestReadable) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter(memory.get(), kMaxBytes).Publish(1, TaggedBlob(1, 100));
  memory.block().slot[2].stamp.store(3);  // publication 2 began
  std::memset(memory.get() + sizeof(WeightsBlock) + 2 * 1024, 0xFF, 50);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  Blob out;
  std::uint32_t version = 0;
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  EXPECT_EQ(out, TaggedBlob(1, 100));
  WeightsSlotWriter(memory.get(), kMaxBytes).Publish(2, TaggedBlob(2, 100));
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  EXPECT_EQ(out, TaggedBlob(2, 100));
}

// Whether the writer that finds it is the one that published or one of the next process.
TEST(WeightsSlotTest, WordThatSomeoneElseWroteIsNotBelieved) {
  for (const std::uint64_t word : {~0ULL, 0xFFFFFFFFULL, (5ULL << 32) | 7, 0ULL}) {
    for (const bool anew : {false, true}) {
      const SlotMemory memory(kMaxBytes);
      WeightsSlotWriter first(memory.get(), kMaxBytes);
      first.Publish(5, TaggedBlob(5, 100));
      memory.block().newest.store(word);
      WeightsSlotWriter writer = anew ? WeightsSlotWriter(memory.get(), kMaxBytes) : first;
      EXPECT_EQ(writer.NewestVersion(), anew ? 0U : 5U);
      writer.Publish(6, TaggedBlob(6, 100));
      WeightsSlotReader reader(memory.get(), kMaxBytes);
      Blob out;
      std::uint32_t version = 0;
      ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh) << word;
      EXPECT_EQ(version, 6U);
      EXPECT_EQ(out, TaggedBlob(6, 100));
    }
  }
}

TEST(WeightsSlotTest, PublicationNumberWrapsAround) {
  const SlotMemory memory(kMaxBytes);
  PublishAs(memory, 0xFFFFFFFE, 10);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  Blob out;
  std::uint32_t version = 0;
  for (std::uint32_t v = 11; v < 20; ++v) {
    writer.Publish(v, TaggedBlob(v, 16));
    ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh) << v;
    ASSERT_EQ(version, v);
  }
}

TEST(WeightsSlotTest, VersionNeverGoesDownForAReader) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  WeightsSlotReader reader(memory.get(), kMaxBytes);
  Blob out;
  std::uint32_t version = 0;
  writer.Publish(8, TaggedBlob(8, 16));
  const std::uint64_t eight = memory.block().newest.load();
  writer.Publish(9, TaggedBlob(9, 16));
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  memory.block().newest.store(eight);
  EXPECT_EQ(reader.Read(out, version), WeightsRead::kNothing);
  EXPECT_EQ(version, 9U);
}

// Any single flipped bit of stamp, size, hash, version or payload is noticed.
TEST(WeightsSlotTest, FlippedBitIsNeverReturned) {
  const SlotMemory memory(64);
  WeightsSlotWriter(memory.get(), 64).Publish(1, TaggedBlob(1, 64));
  const std::size_t header = offsetof(WeightsBlock, slot) + sizeof(WeightsSlotHeader);
  const std::size_t payload = sizeof(WeightsBlock) + 128;
  for (int where = 0; where < 28 + 64; ++where) {
    for (int bit = 0; bit < 8; ++bit) {
      std::byte& byte = memory.get()[where < 28 ? header + static_cast<std::size_t>(where)
                                                : payload + static_cast<std::size_t>(where - 28)];
      byte ^= static_cast<std::byte>(1 << bit);
      WeightsSlotReader reader(memory.get(), 64);
      Blob out;
      std::uint32_t version = 0;
      ASSERT_EQ(reader.Read(out, version), WeightsRead::kRetry) << where << " bit " << bit;
      EXPECT_GT(reader.torn_reads(), 0U);
      byte ^= static_cast<std::byte>(1 << bit);
    }
  }
}

TEST(WeightsSlotDeathTest, TooLargeABlobAndAFallingVersionAreBugs) {
  const SlotMemory memory(kMaxBytes);
  WeightsSlotWriter writer(memory.get(), kMaxBytes);
  writer.Publish(3, TaggedBlob(3, 8));
  EXPECT_DEATH(writer.Publish(3, TaggedBlob(3, 8)), "may only rise");
  EXPECT_DEATH(writer.Publish(4, Blob(kMaxBytes + 1)), "larger than their slot");
}

// One publisher as fast as it can against three readers. Property: whatever a reader returns is one
// publication, whole, and versions rise. The payload is checked against its version byte by byte.
TEST(WeightsSlotTest, RacingReadersNeverSeeATornBlob) {
  constexpr std::uint64_t kBlobBytes = 4096;
  constexpr std::uint32_t kPublications = 20'000;
  const SlotMemory memory(kBlobBytes);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  std::atomic<std::uint64_t> fresh{0};
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      WeightsSlotReader reader(memory.get(), kBlobBytes);
      Blob out;
      std::uint32_t last = 0;
      std::uint32_t version = 0;
      while (true) {
        const bool last_round = done.load();
        const WeightsRead result = reader.Read(out, version);
        if (result == WeightsRead::kFresh) {
          ASSERT_GT(version, last);
          ASSERT_EQ(out, TaggedBlob(version, kBlobBytes - version % 64));
          last = version;
          fresh.fetch_add(1);
        }
        if (last_round) break;
      }
      EXPECT_EQ(last, kPublications) << "a quiet publisher is always read";
    });
  }
  WeightsSlotWriter writer(memory.get(), kBlobBytes);
  for (std::uint32_t version = 1; version <= kPublications; ++version) {
    writer.Publish(version, TaggedBlob(version, kBlobBytes - version % 64));
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(fresh.load(), 3U);
}

}  // namespace
}  // namespace tetrion
