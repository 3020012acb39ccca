#include "lib/region_v2/compat_heap.h"

#include <cstring>

#include "lib/core/check.h"

namespace tetrion {
namespace {

std::uint32_t BlocksOf(std::size_t payload_bytes) {
  return static_cast<std::uint32_t>(
      (sizeof(CompatBlobHeader) + payload_bytes + kCompatBlockBytes - 1) / kCompatBlockBytes);
}

}  // namespace

std::uint32_t CompatCrc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

CompatHeap::CompatHeap(std::span<std::byte> memory)
    : control_(reinterpret_cast<CompatHeapControl*>(memory.data() + kCompatHeapControl)),
      data_(memory.data() + kCompatHeapData),
      next_id_(control_->next_blob_id & kCompatMaxBlobId) {
  std::memset(control_->bitmap, 0, sizeof control_->bitmap);
  control_->free_blocks = kCompatHeapBlocks;
}

std::optional<std::uint32_t> CompatHeap::FindRoom(std::uint32_t blocks) const {
  // Blobs are few: the next candidate is the end of the blob in the way.
  std::uint32_t first = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Blob& blob : blobs_) {
      if (blob.id == 0 || blob.first_block >= first + blocks ||
          blob.first_block + blob.blocks <= first)
        continue;
      first = blob.first_block + blob.blocks;
      moved = true;
    }
  }
  if (first + blocks > kCompatHeapBlocks) return std::nullopt;
  return first;
}

void CompatHeap::Mark(std::uint32_t first_block, std::uint32_t blocks, bool used) {
  for (std::uint32_t block = first_block; block < first_block + blocks; ++block) {
    const auto bit = static_cast<std::uint8_t>(1U << (block % 8));
    std::uint8_t& byte = control_->bitmap[block / 8];
    byte = static_cast<std::uint8_t>(used ? byte | bit : byte & ~bit);
  }
  free_blocks_ = used ? free_blocks_ - blocks : free_blocks_ + blocks;
  control_->free_blocks = free_blocks_;
}

std::uint16_t CompatHeap::NextId() {
  const auto taken = [this](std::uint32_t id) {
    for (const Blob& blob : blobs_) {
      if (blob.id == id) return true;
    }
    return id == 0;
  };
  std::uint32_t id = next_id_;
  while (taken(id)) id = (id + 1) & kCompatMaxBlobId;
  next_id_ = (id + 1) & kCompatMaxBlobId;
  if (next_id_ == 0) next_id_ = 1;
  control_->next_blob_id = next_id_;
  return static_cast<std::uint16_t>(id);
}

std::uint16_t CompatHeap::Allocate(CompatBlobType type, std::span<const std::byte> payload) {
  if (payload.size() > std::size_t{kCompatHeapBlocks} * kCompatBlockBytes) return 0;
  Blob* place = nullptr;
  for (Blob& blob : blobs_) {
    if (blob.id == 0) place = &blob;
  }
  const std::uint32_t blocks = BlocksOf(payload.size());
  const std::optional<std::uint32_t> first = FindRoom(blocks);
  if (place == nullptr || !first) return 0;
  *place = {.id = NextId(), .first_block = *first, .blocks = blocks};
  Mark(*first, blocks, true);
  const CompatBlobHeader header = {.magic = kCompatBlobMagic,
                                   .id = place->id,
                                   .type = type,
                                   .flags = 0,
                                   .size = static_cast<std::uint32_t>(payload.size()),
                                   .offset = *first * kCompatBlockBytes,
                                   .checksum = CompatCrc32(payload),
                                   .reserved = {}};
  std::byte* at = data_ + std::size_t{header.offset};
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at + sizeof header, payload.data(), payload.size());
  return place->id;
}

bool CompatHeap::Free(std::uint16_t id) {
  if (id == 0) return false;
  for (Blob& blob : blobs_) {
    if (blob.id != id) continue;
    const std::uint32_t no_magic = 0;
    std::memcpy(data_ + std::size_t{blob.first_block} * kCompatBlockBytes, &no_magic,
                sizeof no_magic);
    Mark(blob.first_block, blob.blocks, false);
    blob = {};
    return true;
  }
  return false;
}

CompatHeapWalk::CompatHeapWalk(std::span<const std::byte> memory)
    : data_(memory.data() + kCompatHeapData) {
  TETRION_CHECK(memory.size() >= kCompatRegionBytes, "not a compatibility region");
  // The bitmap may change under the walk. Blocks beyond ours belong to the stream rings.
  std::memcpy(bitmap_.data(),
              memory.data() + kCompatHeapControl + offsetof(CompatHeapControl, bitmap),
              bitmap_.size());
}

std::optional<CompatHeapEntry> CompatHeapWalk::Next() {
  while (next_ < kCompatHeapBlocks && !Used(next_)) ++next_;
  if (next_ >= kCompatHeapBlocks) return std::nullopt;
  CompatHeapEntry entry = {.block = next_};
  std::memcpy(&entry.header, data_ + std::size_t{next_} * kCompatBlockBytes, sizeof entry.header);
  const std::uint32_t room = (kCompatHeapBlocks - next_) * kCompatBlockBytes;
  entry.is_blob = entry.header.magic == kCompatBlobMagic &&
                  entry.header.offset == next_ * kCompatBlockBytes &&
                  entry.header.size <= room - sizeof entry.header;
  if (entry.is_blob) entry.blocks = BlocksOf(entry.header.size);
  next_ += entry.blocks;
  return entry;
}

bool ReadCompatBlob(std::span<const std::byte> memory, std::uint16_t id,
                    std::span<std::byte> payload) {
  CompatHeapWalk walk(memory);
  while (const std::optional<CompatHeapEntry> entry = walk.Next()) {
    if (!entry->is_blob || entry->header.id != id) continue;
    if (entry->header.size != payload.size()) return false;
    const std::size_t at = kCompatHeapData + std::size_t{entry->block} * kCompatBlockBytes;
    std::memcpy(payload.data(), memory.data() + at + sizeof entry->header, payload.size());
    return true;
  }
  return false;
}

}  // namespace tetrion
