#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/region_v2/compat_blocks.h"

namespace tetrion {

// The heap of a compatibility region: blobs in the first kCompatHeapBlocks 64-byte blocks, however
// many there are, first fit by bitmap. The host alone
// allocates and frees; the kernel only looks blobs up by id. Published by the response that names
// the blob (its release in the response ring), hence plain stores here.
//
// Thread role: the host's thread; memory is the region's.
class CompatHeap {
 public:
  // `memory` is a region whose heap control has been validated. Blobs of an earlier host are
  // forgotten; ids go on where it stopped.
  explicit CompatHeap(std::span<std::byte> memory);

  // Copies `payload` into a new blob; returns its id, 1..65535, or 0 when there is no room or no
  // free id.
  std::uint16_t Allocate(CompatBlobType type, std::span<const std::byte> payload);
  // Frees a blob; false when no such blob is allocated.
  bool Free(std::uint16_t id);

  std::uint32_t free_blocks() const { return free_blocks_; }

 private:
  // Process-local truth: any process may overwrite what lies in the region.
  struct Blob {
    std::uint16_t id = 0;
    std::uint32_t first_block = 0;
    std::uint32_t blocks = 0;
  };
  // Observations outstanding, metadata, weights: more are never alive.
  static constexpr std::size_t kMaxBlobs = 16;

  std::optional<std::uint32_t> FindRoom(std::uint32_t blocks) const;
  void Mark(std::uint32_t first_block, std::uint32_t blocks, bool used);
  std::uint16_t NextId();

  CompatHeapControl* control_;
  std::byte* data_;
  std::array<Blob, kMaxBlobs> blobs_ = {};  // id 0: free place
  std::uint32_t free_blocks_ = kCompatHeapBlocks;
  std::uint32_t next_id_ = 1;
};

// What lies at a block that the bitmap calls used.
struct CompatHeapEntry {
  std::uint32_t block = 0;
  std::uint32_t blocks = 1;
  // Whether a blob that fits in the heap starts here; `header` is whatever was found.
  bool is_blob = false;
  CompatBlobHeader header = {};
};

// Walks the heap by a copy of its bitmap, from blob to blob. Any content of the region gives a walk
// of at most kCompatHeapBlocks entries, each within the managed blocks. `memory` must outlive it.
class CompatHeapWalk {
 public:
  explicit CompatHeapWalk(std::span<const std::byte> memory);
  // The next entry; nullopt at the end.
  std::optional<CompatHeapEntry> Next();
  // `block` < kCompatHeapBlocks.
  bool Used(std::uint32_t block) const { return (bitmap_[block / 8] >> (block % 8) & 1) != 0; }

 private:
  std::array<std::uint8_t, kCompatHeapBlocks / 8> bitmap_;
  const std::byte* data_;
  std::uint32_t next_ = 0;
};

// The payload of blob `id`, copied into `payload`, which must have its exact size; false when the
// heap holds no such blob. Any thread, any content of the region.
bool ReadCompatBlob(std::span<const std::byte> memory, std::uint16_t id,
                    std::span<std::byte> payload);

// CRC-32 (IEEE 802.3, reflected, as in zlib).
std::uint32_t CompatCrc32(std::span<const std::byte> bytes);

}  // namespace tetrion
