#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/shm/bell.h"
#include "lib/shm/region_header.h"

// The single-producer single-consumer ring of fixed-size records, over a Region or plain memory.
// Records are written and read in place; one publication makes any number of them visible.
//
// Thread roles: one RingProducer and one RingConsumer exist per ring, usually in two processes;
// each is used by one thread at a time (OwnerAlive by any).
//
// Invariants
//   1. tail <= head <= tail + capacity, both free-running u64 (differences survive the wrap).
//      Record i lies at index i mod capacity; all of the capacity is usable.
//   2. Only the producer stores head, only the consumer stores tail; each keeps its own value in
//      process-local memory and never reads it back. A producer or consumer killed anywhere leaves
//      the last stored cursor: an unpublished record is never seen, an unreleased one not lost.
//   3. Records in [tail, head) belong to the consumer, all others to the producer.
//   4. Everything the peer wrote is untrusted: a cursor is loaded once, checked, used. One that
//      moved back or past the capacity quarantines the ring for good, with a reason.
//
// Ordering
//   head: release in Publish pairs with acquire in Peek (the records' bytes).
//   tail: release in Release pairs with acquire in FreeRecords (reuse of the records' bytes).
//   closed: release in Close pairs with acquire in Peek, which then looks at head once more.
//   Waiting for records or space goes through a Bell, which orders by itself (bell.h).
//
// Waking the producer. A locked instruction in every Release would cost more than the record's way
// itself, so only a Release that moves tail across a multiple of a quarter of the capacity rings
// the space bell for certain; the others look at it with a plain load. That suffices: a producer
// sleeps only if, after arming the bell, it saw tail = head - capacity. The consumer gives these
// `capacity` records back without help from the producer, and on the way crosses a quarter. That
// Release's read-modify-write either finds the armed bit and wakes, or precedes the arming, but
// then the producer's re-check would have seen a later tail.
//
// The peer's cursor is cached process-locally and reloaded only when the cached one says full or
// empty: otherwise its line would travel between the cores with every record.
//
// Small records come fastest in runs: ClaimMany(n), write, Complete, Publish. A store waits in the
// core's store buffer, behind the record's stores, until the consumer's core has given the record's
// line up; the bookkeeping of a claim for every record would fill that buffer and leave fewer lines
// on their way at the same time (measured: half the rate of runs of 32 records of 64 bytes).

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
inline std::uint64_t RingMemoryBytes(const RingSpec& spec) {
  TETRION_CHECK(IsPowerOfTwo(spec.capacity) && spec.capacity <= kMaxRingCapacity,
                "ring capacity must be a power of two up to 2^31");
  TETRION_CHECK(spec.record_bytes > 0 && spec.record_bytes <= kMaxRingRecordBytes,
                "ring records must have 1 byte to 1 GiB");
  return kRingRecordsOffset + spec.capacity * RingStrideBytes(spec);
}
// Bytes of a region file that holds such a ring: RingMemoryBytes and the region's header.
inline std::uint64_t RingRegionBytes(const RingSpec& spec) {
  return AlignUp(kRegionHeaderBytes + RingMemoryBytes(spec), kRegionHeaderBytes);
}

// Fetches a line that the peer read a lap ago for writing, so that the next record's first store
// does not wait for it. __builtin_prefetch would only read it: x86-64-v3 does not promise the
// instruction, which older processors take as a no-op.
inline void PrefetchForWrite(std::byte* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace tetrion
