#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/core/check.h"
#include "lib/shm/bell.h"
#include "lib/shm/region.h"
#include "lib/shm/ring_producer.h"
#include "lib/shm/spsc_ring.h"

namespace tetrion {

enum class [[nodiscard]] RingStatus {
  kOk,
  kEmpty,           // for now; a dead owner publishes no more, ask OwnerAlive
  kClosedAndEmpty,  // final
  kCorrupt,         // quarantined, final: see RingConsumer::corrupt_reason
};

// A contiguous run of published records, up to the end of the ring's memory.
struct RingPeek {
  const std::byte* records = nullptr;  // [count, stride_bytes] u8; valid until released
  std::uint64_t first = 0;             // number of the first record
  std::uint32_t count = 0;             // at most the capacity; 0 unless kOk
  RingStatus status = RingStatus::kEmpty;
};

// The reading end; see spsc_ring.h for roles, invariants and ordering.
class RingConsumer {
 public:
  // Attaches to a ring of any owner, dead or alive, and goes on at its tail. Throws Error like
  // Region::Attach; kConfig also when the ring's sizes do not fit the file.
  static RingConsumer Attach(const std::string& path, std::uint64_t spec_hash,
                             const AttachNeeds& needs = {}, RegionKind kind = RegionKind::kRing);
  // The consumer of RingProducer::Over's memory.
  static RingConsumer Over(std::byte* memory, const RingSpec& spec);
  // The consumer of a region's ring in its producer's own process, for another thread than the
  // producer's. The region stays the producer's, which must outlive the consumer.
  static RingConsumer Beside(RingProducer& producer);

  RingConsumer(RingConsumer&&) noexcept = default;

  // The published records after the first `skip` unreleased ones (already peeked, not yet
  // released). Never blocks. CHECKs that `skip` records were seen.
  RingPeek Peek(std::uint64_t skip = 0) {
    if (cached_head_ - tail_ <= skip) [[unlikely]] {
      const RingStatus status = Reload(skip);
      if (status != RingStatus::kOk) return {nullptr, tail_ + skip, 0, status};
    }
    const std::uint64_t first = tail_ + skip;
    const std::uint64_t index = first & (capacity_ - 1);
    const std::uint64_t left = cached_head_ - first;
    const std::uint64_t to_wrap = capacity_ - index;
    const auto count = static_cast<std::uint32_t>(left < to_wrap ? left : to_wrap);
    return {records_ + index * stride_bytes_, first, count, RingStatus::kOk};
  }

  // Gives the oldest `n` records back to the producer and wakes it if it waits: at the latest when
  // a quarter of the ring has been given back since it began to wait, in practice at once (see
  // spsc_ring.h, "Waking the producer"). CHECKs that they were peeked.
  void Release(std::uint64_t n) {
    TETRION_CHECK(n <= cached_head_ - tail_, "released records that were never published");
    const std::uint64_t before = tail_;
    tail_ += n;
    block_->tail.store(tail_, std::memory_order_release);  // pairs with FreeRecords
    if ((before ^ tail_) >= quarter_) {
      space_bell_.Ring();
    } else {
      space_bell_.RingIfSeenArmed();
    }
  }

  // For a second reader of the same ring, which looks ahead of the one that releases: passes the
  // oldest `n` records, and does not give them back. A reader either releases or skips. CHECKs that
  // they were peeked.
  void Skip(std::uint64_t n) {
    TETRION_CHECK(n <= cached_head_ - tail_, "skipped records that were never published");
    tail_ += n;
  }

  // Records released, and published as far as Peek has seen.
  std::uint64_t tail() const { return tail_; }
  std::uint64_t head() const { return cached_head_; }

  // Whether the producer's process lives (its flock). Once false, no record follows those that Peek
  // still finds. Over plain memory always true.
  bool OwnerAlive() const { return !region_ || region_->OwnerAlive(); }
  // Removes the ring's file; see Region::Unlink and Region::TryUnlink.
  void Unlink() {
    if (region_) region_->Unlink();
  }
  [[nodiscard]] bool TryUnlink() { return !region_ || region_->TryUnlink(); }

  // Why Peek says kCorrupt; empty otherwise.
  const std::string& corrupt_reason() const { return corrupt_reason_; }

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t record_bytes() const { return record_bytes_; }
  std::uint64_t stride_bytes() const { return stride_bytes_; }
  // The whole mapping of the ring's region; empty over plain memory.
  std::span<std::byte> mapping() const { return mapping_; }
  // Null over plain memory and beside a producer.
  const Region* region() const { return region_ ? &*region_ : nullptr; }

 private:
  RingConsumer(std::byte* memory, const RingSpec& spec);
  RingStatus Reload(std::uint64_t skip);
  RingStatus Quarantine(std::uint64_t head);

  // Immutable after construction; never re-read from the ring.
  std::optional<Region> region_;
  std::span<std::byte> mapping_;
  RingBlock* block_;
  std::byte* records_;
  std::uint64_t capacity_;
  std::uint64_t record_bytes_;
  std::uint64_t stride_bytes_;
  std::uint64_t quarter_;  // records; a power of two
  Bell space_bell_;
  // The consumer's own state.
  std::uint64_t tail_;
  std::uint64_t cached_head_;
  std::string corrupt_reason_;
};

}  // namespace tetrion
