#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/core/align.h"
#include "lib/shm/bell.h"

namespace tetrion {

// What both ends of a ring must agree on. `spec_hash` identifies the meaning of a record (for rows
// RowLayout::Hash()).
struct RingSpec {
  std::uint64_t capacity = 0;      // records, a power of two up to 2^31; all of it is usable
  std::uint64_t record_bytes = 0;  // stored at a stride rounded up to 64
  std::uint64_t spec_hash = 0;
};

// First page of a ring's memory; the records follow at kRingRecordsOffset, page-aligned.
//
//   0          8              16          24       28 ..128       256        384          640..4096
//   | capacity | record_bytes | spec_hash | closed |   | head ... | tail ... | space bell | ...
//   \---- written once by the producer --/ producer     producer   consumer   both
inline constexpr std::uint64_t kRingRecordsOffset = 4096;

struct RingBlock {
  // Atomic, so that a reader loads each exactly once; ordered by the region's magic.
  std::atomic<std::uint64_t> capacity;
  std::atomic<std::uint64_t> record_bytes;
  std::atomic<std::uint64_t> spec_hash;
  std::atomic<std::uint32_t> closed;  // 1: nothing will be published any more
  std::uint32_t reserved;             // 0
  alignas(kCacheLinePairBytes) std::atomic<std::uint64_t> head;  // records published, free-running
  alignas(kCacheLinePairBytes) std::atomic<std::uint64_t> tail;  // records released, free-running
  BellBlock space;  // the consumer wakes a producer that waits for space
};
static_assert(offsetof(RingBlock, closed) == 24);
static_assert(offsetof(RingBlock, head) == 128);
static_assert(offsetof(RingBlock, tail) == 256);
static_assert(offsetof(RingBlock, space) == 384);
static_assert(sizeof(RingBlock) == 640 && sizeof(RingBlock) <= kRingRecordsOffset);

inline constexpr std::uint64_t kMaxRingCapacity = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kMaxRingRecordBytes = std::uint64_t{1} << 30;

// Distance between records.
constexpr std::uint64_t RingStrideBytes(const RingSpec& spec) {
  return AlignUp(spec.record_bytes, kColumnAlignBytes);
}
// Bytes of the memory a ring occupies; CHECKs the spec.
std::uint64_t RingMemoryBytes(const RingSpec& spec);
// Bytes of a region file that holds such a ring: RingMemoryBytes and the region's header.
std::uint64_t RingRegionBytes(const RingSpec& spec);

}  // namespace tetrion
