#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "lib/core/check.h"
#include "lib/shm/bell.h"
#include "lib/shm/region.h"
#include "lib/shm/spsc_ring.h"

namespace tetrion {

enum class [[nodiscard]] SpaceResult {
  kSpace,
  kTimeout,  // also when the consumer's cursor is corrupt: see RingProducer::corrupt
};

// The writing end; see spsc_ring.h for roles, invariants and ordering.
class RingProducer {
 public:
  // Exclusive use of the next unpublished records until Complete or destruction (which aborts: the
  // next claim begins at the same record). At most one at a time; must not outlive or move with the
  // producer.
  class [[nodiscard]] Loan {
   public:
    Loan(Loan&& other) noexcept
        : producer_(std::exchange(other.producer_, nullptr)),
          records_(other.records_),
          count_(other.count_) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (producer_ != nullptr) producer_->loaned_ = false;
    }
    // False when the ring was full.
    bool ok() const { return producer_ != nullptr; }
    // [count, stride_bytes] u8, each 64-byte aligned; old contents.
    std::byte* record() const { return records_; }
    std::uint32_t count() const { return count_; }
    // Counts the records, or the first `n` of them, as written; the next Publish makes them
    // visible. Ends the loan.
    void Complete() { Complete(count_); }
    void Complete(std::uint32_t n) {
      TETRION_CHECK(ok() && n <= count_, "completed more records than the loan holds");
      producer_->completed_ += n;
      producer_->loaned_ = false;
      producer_ = nullptr;
    }

   private:
    friend class RingProducer;
    Loan(RingProducer* producer, std::byte* records, std::uint32_t count)
        : producer_(producer), records_(records), count_(count) {}

    RingProducer* producer_;
    std::byte* records_;
    std::uint32_t count_;
  };

  // Lays a ring out in a region fresh from Region::Create (of at least RingRegionBytes) and seals
  // it. `first` is the initial cursor, not 0 in tests only.
  static RingProducer Create(Region&& region, const RingSpec& spec, std::uint64_t first = 0);
  // The same over RingMemoryBytes(spec) of zeroed, 128-byte aligned memory of the caller's, which
  // must outlive the producer and every consumer.
  static RingProducer Over(std::byte* memory, const RingSpec& spec, std::uint64_t first = 0);

  // Goes on where an earlier producer of the same memory ended, dead or gone; the ring must have
  // been laid out with this spec, and no other producer may be alive. nullopt when the memory holds
  // another ring or impossible cursors.
  static std::optional<RingProducer> Adopt(std::byte* memory, const RingSpec& spec);

  RingProducer(RingProducer&&) noexcept = default;

  // The next record, or up to `n` > 0 consecutive ones: fewer when the ring's memory ends before or
  // has less space. Neither blocks nor allocates.
  Loan Claim() { return ClaimMany(1); }
  Loan ClaimMany(std::uint32_t n) {
    TETRION_CHECK(!loaned_, "claimed records while others are on loan");
    TETRION_CHECK(n > 0, "claimed no record");
    std::uint64_t free = capacity_ - (completed_ - cached_tail_);
    if (free < n) free = FreeRecords();
    if (free == 0) return Loan(nullptr, nullptr, 0);
    const std::uint64_t to_wrap = capacity_ - (completed_ & (capacity_ - 1));
    const std::uint64_t most = free < to_wrap ? free : to_wrap;
    loaned_ = true;
    return Loan(this, NextRecord(), most < n ? static_cast<std::uint32_t>(most) : n);
  }

  // Makes all completed records visible with one release-store and rings the bell, if there is one.
  // Nothing happens without new records.
  void Publish() {
    if (completed_ == published_) return;
    published_ = completed_;
    block_->head.store(published_, std::memory_order_release);  // pairs with Peek
    if (bell_.valid()) bell_.Ring();
    if (completed_ - cached_tail_ < capacity_) PrefetchForWrite(NextRecord());
  }

  // Records completed and published since the ring was made, both counted from `first`.
  std::uint64_t completed() const { return completed_; }
  std::uint64_t published() const { return published_; }
  // Records that the consumer has given back; looks at its cursor.
  std::uint64_t Released() const {
    const std::uint64_t tail = block_->tail.load(std::memory_order_acquire);  // pairs with Release
    return tail - cached_tail_ > published_ - cached_tail_ ? cached_tail_ : tail;
  }
  // Records that can be claimed now; looks at the consumer's cursor.
  std::uint64_t FreeRecords();
  // Blocks until there is space or `timeout_ns` has passed. Publish first: no other thread will.
  SpaceResult WaitForSpace(std::int64_t timeout_ns);

  // Publishes what is complete and tells the consumer that nothing follows. May be called twice.
  void Close();
  bool closed() const { return closed_; }

  // The consumer's bell, rung by Publish and Close.
  void SetBell(Bell bell) { bell_ = bell; }
  // The consumer's cursor was impossible: no space will ever come, give the ring up.
  bool corrupt() const { return corrupt_; }

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t stride_bytes() const { return stride_bytes_; }
  // Null over plain memory.
  Region* region() { return region_ ? &*region_ : nullptr; }

 private:
  enum class Layout { kFresh, kPresent };
  RingProducer(std::byte* memory, const RingSpec& spec, std::uint64_t first, Layout layout);
  std::byte* NextRecord() const {
    return records_ + (completed_ & (capacity_ - 1)) * stride_bytes_;
  }

  // Immutable after construction.
  std::optional<Region> region_;
  RingBlock* block_;
  std::byte* records_;
  std::uint64_t capacity_;
  std::uint64_t stride_bytes_;
  Bell space_bell_;
  Bell bell_;
  // The producer's own state.
  std::uint64_t completed_;
  std::uint64_t published_;
  std::uint64_t cached_tail_;
  bool loaned_ = false;
  bool closed_ = false;
  bool corrupt_ = false;
};

}  // namespace tetrion
