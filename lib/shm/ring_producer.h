#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "lib/core/check.h"
#include "lib/shm/bell.h"
#include "lib/shm/region.h"
#include "lib/shm/ring_block.h"

namespace tetrion {

enum class [[nodiscard]] SpaceResult{
    kSpace,
    kTimeout,  // also when the consumer's cursor is corrupt: see RingProducer::corrupt
};

// The writing end; see spsc_ring.h for roles, invariants and ordering.
class RingProducer {
 public:
  // Exclusive use of the next unpublished record until Complete or destruction (which aborts: the
  // next Claim returns the same record). At most one at a time; must not outlive or move with the
  // producer.
  class [[nodiscard]] Loan {
   public:
    Loan(Loan&& other) noexcept
        : producer_(std::exchange(other.producer_, nullptr)), record_(other.record_) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (producer_ != nullptr) producer_->loaned_ = false;
    }
    // False when the ring was full.
    bool ok() const { return producer_ != nullptr; }
    // [record_bytes] u8, 64-byte aligned; old contents.
    std::byte* record() const { return record_; }
    // Counts the record as written; the next Publish makes it visible. Ends the loan.
    void Complete() {
      TETRION_CHECK(ok(), "completed a loan that holds no record");
      ++producer_->completed_;
      producer_->loaned_ = false;
      producer_ = nullptr;
    }

   private:
    friend class RingProducer;
    Loan(RingProducer* producer, std::byte* record) : producer_(producer), record_(record) {}

    RingProducer* producer_;
    std::byte* record_;
  };

  // Lays a ring out in a region fresh from Region::Create (of at least RingRegionBytes) and seals
  // it. Cursors start at `first` (a test's business).
  static RingProducer Create(Region&& region, const RingSpec& spec, std::uint64_t first = 0);
  // The same over RingMemoryBytes(spec) of zeroed, 128-byte aligned memory of the caller's, which
  // must outlive the producer and every consumer.
  static RingProducer Over(std::byte* memory, const RingSpec& spec, std::uint64_t first = 0);

  // Goes on where an earlier producer of the same memory ended, dead or gone; the ring must have
  // been laid out with this spec, and nobody else may produce. nullopt when the memory holds
  // another ring or impossible cursors.
  static std::optional<RingProducer> Adopt(std::byte* memory, const RingSpec& spec);

  RingProducer(RingProducer&&) noexcept = default;

  // Never blocks, never allocates.
  Loan Claim() {
    TETRION_CHECK(!loaned_, "claimed a record while another is on loan");
    if (completed_ - cached_tail_ >= capacity_ && FreeRecords() == 0) return Loan(nullptr, nullptr);
    loaned_ = true;
    return Loan(this, NextRecord());
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
  // Records that can be claimed now; looks at the consumer's cursor.
  std::uint64_t FreeRecords();
  // Blocks until there is space or `timeout_ns` has passed. Publish first: nobody else will.
  SpaceResult WaitForSpace(std::int64_t timeout_ns);

  // Publishes what is complete and tells the consumer that nothing follows. May be called twice.
  void Close();
  bool closed() const { return closed_; }

  // The consumer's bell, rung by Publish and Close.
  void SetBell(Bell bell) { bell_ = bell; }
  // The consumer's cursor was impossible: no space will ever come, give the ring up.
  bool corrupt() const { return corrupt_; }
  // How often the producer slept for space.
  std::uint64_t SpaceWaits() const { return space_bell_.SleepsApprox(); }

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
  // Fetches the line that the consumer read a lap ago, so that the next record's first store does
  // not wait for it. __builtin_prefetch would only read it: x86-64-v3 does not promise the
  // instruction, which older processors take as a no-op.
  static void PrefetchForWrite(std::byte* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
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
