#include "lib/weights/weights_slot.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::uint64_t);
constexpr int kCopyTries = 3;  // each needs the publisher to go round all slots during one copy

using Word = std::atomic<std::uint64_t>;

Word* SlotWords(std::byte* blobs, std::uint64_t max_blob_bytes, std::uint32_t slot) {
  return reinterpret_cast<Word*>(blobs + slot * WeightsRoomBytes(max_blob_bytes));
}

void StoreWords(Word* words, std::span<const std::byte> blob) {
  for (std::size_t at = 0; at < blob.size(); at += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, blob.data() + at, std::min(kWordBytes, blob.size() - at));
    words[at / kWordBytes].store(word, std::memory_order_relaxed);
  }
}

void LoadWords(const Word* words, std::span<std::byte> blob) {
  for (std::size_t at = 0; at < blob.size(); at += kWordBytes) {
    const std::uint64_t word = words[at / kWordBytes].load(std::memory_order_relaxed);
    std::memcpy(blob.data() + at, &word, std::min(kWordBytes, blob.size() - at));
  }
}

std::uint32_t VersionOf(std::uint64_t newest) {
  return static_cast<std::uint32_t>(newest);
}
std::uint32_t PublicationOf(std::uint64_t newest) {
  return static_cast<std::uint32_t>(newest >> 32);
}
std::uint64_t ClosedStamp(std::uint32_t publication) {
  return 2 * std::uint64_t{publication};
}

}  // namespace

std::uint64_t WeightsHash(std::span<const std::byte> blob, std::uint32_t version) {
  return XXH64(blob.data(), blob.size(), version);
}

std::uint64_t WeightsRoomBytes(std::uint64_t max_blob_bytes) {
  return AlignUp(max_blob_bytes, kCacheLinePairBytes);
}

std::uint64_t WeightsSlotBytes(std::uint64_t max_blob_bytes) {
  return sizeof(WeightsBlock) + kWeightsSlots * WeightsRoomBytes(max_blob_bytes);
}

WeightsSlotWriter::WeightsSlotWriter(std::byte* memory, std::uint64_t max_blob_bytes)
    : block_(reinterpret_cast<WeightsBlock*>(memory)),
      blobs_(memory + sizeof(WeightsBlock)),
      max_blob_bytes_(max_blob_bytes) {
  const std::uint64_t newest = block_->newest.load(std::memory_order_acquire);
  std::vector<std::byte> blob;
  if (WeightsSlotReader(memory, max_blob_bytes).Read(blob, version_) == WeightsRead::kFresh) {
    publication_ = PublicationOf(newest);
  }
}

void WeightsSlotWriter::Publish(std::uint32_t version, std::span<const std::byte> blob) {
  TETRION_CHECK(blob.size() <= max_blob_bytes_, "the weights are larger than their slot");
  TETRION_CHECK(version > version_, "a policy version may only rise");
  version_ = version;
  ++publication_;
  const std::uint32_t index = publication_ % kWeightsSlots;
  WeightsSlotHeader& slot = block_->slot[index];
  // Pairs with the reader's fetch_add: its copy is over before our first store below.
  slot.stamp.exchange(ClosedStamp(publication_) - 1, std::memory_order_acq_rel);
  StoreWords(SlotWords(blobs_, max_blob_bytes_, index), blob);
  slot.bytes.store(blob.size(), std::memory_order_relaxed);
  slot.hash.store(WeightsHash(blob, version), std::memory_order_relaxed);
  slot.version.store(version, std::memory_order_relaxed);
  slot.stamp.store(ClosedStamp(publication_), std::memory_order_release);  // pairs with CopySlot
  block_->newest.store((std::uint64_t{publication_} << 32) | version,
                       std::memory_order_release);  // pairs with Read
}

WeightsSlotReader::WeightsSlotReader(std::byte* memory, std::uint64_t max_blob_bytes,
                                     std::uint32_t above)
    : block_(reinterpret_cast<WeightsBlock*>(memory)),
      blobs_(memory + sizeof(WeightsBlock)),
      max_blob_bytes_(max_blob_bytes),
      last_version_(above) {}

std::uint32_t WeightsSlotReader::NewestVersion() const {
  return VersionOf(block_->newest.load(std::memory_order_acquire));
}

WeightsRead WeightsSlotReader::Read(std::vector<std::byte>& out, std::uint32_t& version) {
  for (int i = 0; i < kCopyTries; ++i) {
    const std::uint64_t newest = block_->newest.load(std::memory_order_acquire);
    if (VersionOf(newest) <= last_version_) return WeightsRead::kNothing;
    if (CopySlot(PublicationOf(newest), VersionOf(newest), out)) {
      last_version_ = version = VersionOf(newest);
      return WeightsRead::kFresh;
    }
    ++torn_reads_;
  }
  return WeightsRead::kRetry;
}

bool WeightsSlotReader::CopySlot(std::uint32_t publication, std::uint32_t version,
                                 std::vector<std::byte>& out) {
  const std::uint32_t index = publication % kWeightsSlots;
  WeightsSlotHeader& slot = block_->slot[index];
  const std::uint64_t stamp = ClosedStamp(publication);
  if (slot.stamp.load(std::memory_order_acquire) != stamp) return false;
  const std::uint64_t bytes = slot.bytes.load(std::memory_order_relaxed);
  const std::uint64_t hash = slot.hash.load(std::memory_order_relaxed);
  const std::uint32_t slot_version = slot.version.load(std::memory_order_relaxed);
  if (bytes > max_blob_bytes_ || slot_version != version) return false;
  out.resize(bytes);
  LoadWords(SlotWords(blobs_, max_blob_bytes_, index), out);
  // Read-don't-modify-write: found unchanged, it precedes any later publication's exchange.
  if (slot.stamp.fetch_add(0, std::memory_order_acq_rel) != stamp) return false;
  return XXH64(out.data(), out.size(), version) == hash;
}

}  // namespace tetrion
