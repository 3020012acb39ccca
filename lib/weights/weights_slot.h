#pragma once

// The newest policy weights, from one publisher to any number of readers in other processes,
// through four slots of shared memory. Publishing never waits for readers, reading never blocks the
// publisher.
//
// Thread roles: one WeightsSlotWriter at a time (the learner's publisher), used by one thread; a
// WeightsSlotReader per reading thread, whose NewestVersion may be called by any thread.
//
// Invariants
//   1. Publication n (from 1) goes to slot n mod 4. Its stamp is 2n - 1 while it is written, 2n
//      after.
//   2. `newest` names a publication whose slot was complete when `newest` was stored; a writer
//      killed anywhere leaves it so.
//   3. Versions rise strictly; a reader never returns one lower than it returned before.
//   4. A blob is returned only if stamp, size and xxhash64 agree after the copy.
//   5. Every process of the run can write here: a writer believes its own numbers alone, and of an
//      earlier writer's only those of a whole publication.
//
// Ordering, without fences: the writer opens a slot with an acquire-release exchange of the stamp,
// copies with relaxed word stores and closes with a release store. The reader starts with an
// acquire load of the stamp, copies with relaxed word loads and re-checks by an acquire-release
// fetch_add of zero. If that still finds the old stamp it precedes the writer's exchange in the
// stamp's order, so its copy happened before every store of the later publication; if not, the copy
// is thrown away.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/core/align.h"

namespace tetrion {

inline constexpr std::uint32_t kWeightsSlots = 4;

struct WeightsSlotHeader {
  alignas(kCacheLinePairBytes) std::atomic<std::uint64_t> stamp;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> hash;  // WeightsHash
  std::atomic<std::uint32_t> version;
};
static_assert(sizeof(WeightsSlotHeader) == kCacheLinePairBytes);

//   0           128            128 + 4 * 128
//   | newest .. | 4 x header   | 4 x blob words, each blob's room rounded up to 128
struct WeightsBlock {
  alignas(kCacheLinePairBytes) std::atomic<std::uint64_t> newest;  // publication << 32 | version
  WeightsSlotHeader slot[kWeightsSlots];
};
static_assert(sizeof(WeightsBlock) == 5 * kCacheLinePairBytes);
static_assert(offsetof(WeightsBlock, slot) == 128);

// xxhash64 of a blob, seeded with its version: two versions of the same bytes differ.
std::uint64_t WeightsHash(std::span<const std::byte> blob, std::uint32_t version);

// What one blob of up to `max_blob_bytes` takes: whole cache-line pairs.
std::uint64_t WeightsRoomBytes(std::uint64_t max_blob_bytes);
// Memory for blobs of up to `max_blob_bytes`; zero-filled memory, 128-byte aligned, holds no blob.
std::uint64_t WeightsSlotBytes(std::uint64_t max_blob_bytes);

class WeightsSlotWriter {
 public:
  // Over WeightsSlotBytes(max_blob_bytes), which must outlive the writer. Goes on after what an
  // earlier writer has published, if that can be read. Allocates.
  WeightsSlotWriter(std::byte* memory, std::uint64_t max_blob_bytes);
  // Copies the blob into the next slot and announces it. CHECKs size (<= max_blob_bytes) and that
  // `version` is higher than the newest. Never blocks.
  void Publish(std::uint32_t version, std::span<const std::byte> blob);
  // 0 before the first publication.
  std::uint32_t NewestVersion() const { return version_; }

 private:
  WeightsBlock* block_;
  std::byte* blobs_;
  std::uint64_t max_blob_bytes_;
  std::uint32_t publication_ = 0, version_ = 0;  // of the newest
};

enum class [[nodiscard]] WeightsRead {
  kFresh,    // `out` holds `version`, newer than what this reader returned before
  kNothing,  // nothing newer; `out` is untouched
  kRetry,    // the publisher overtook the copy, or the memory holds garbage: ask again later
};

class WeightsSlotReader {
 public:
  // Over the writer's memory, which must outlive the reader and is untrusted. Returns versions
  // above `above` only: what the caller has from an earlier reader over other memory.
  WeightsSlotReader(std::byte* memory, std::uint64_t max_blob_bytes, std::uint32_t above = 0);
  // Copies the newest blob unless this reader has returned it already. `out` is resized (allocates
  // only when it grows); its contents are unspecified after kRetry. Bounded work, never blocks.
  WeightsRead Read(std::vector<std::byte>& out, std::uint32_t& version);
  // One load: what Read would return if it succeeded now. 0 before the first publication.
  std::uint32_t NewestVersion() const;
  // Copies thrown away so far.
  std::uint64_t torn_reads() const { return torn_reads_; }

 private:
  bool CopySlot(std::uint32_t publication, std::uint32_t version, std::vector<std::byte>& out);

  WeightsBlock* block_;
  std::byte* blobs_;
  std::uint64_t max_blob_bytes_;
  std::uint32_t last_version_;
  std::uint64_t torn_reads_ = 0;
};

}  // namespace tetrion
