#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/core/align.h"
#include "lib/stream/compat_layout.h"

namespace tetrion {

// The single-producer single-consumer ring of the compatibility layout, over a CompatRingHeader in
// shared memory and the entries behind it.
//
// Thread roles: one producer calls Push, one consumer Pop, usually in two processes; each has its
// own CompatRing over the same memory, which the caller owns.
//
// Invariants
//   1. Indices are masked to 0..size-1; head == tail is empty, so one slot always stays free.
//   2. Only the producer stores head, only the consumer stores tail. Each keeps its own index
//      process-locally and never reads it back. The exception is RewindHead, in a window in which
//      the protocol keeps the consumer away.
//   3. `size` is validated at Attach and not read again. The peer's index is loaded once per use
//      and compared with size before it touches an entry: with any content of the memory an access
//      stays within the ring.
//
// Ordering
//   head: sequentially consistent exchange in Push; its release pairs with the acquire in Pop (the
//         entry's bytes), its place in the total order with CompatBell's `asleep` word.
//   tail: release in Pop pairs with acquire in Push (reuse of the entry's bytes).

enum class [[nodiscard]] CompatRingResult{
    kOk,
    kWasEmpty,  // pushed, and the consumer had taken everything before
    kFull,     kEmpty,
    kCorrupt,  // the peer's index is no index
};

inline std::atomic_ref<std::uint32_t> CompatWord(std::uint32_t& word) {
  return std::atomic_ref<std::uint32_t>(word);
}

template <typename Entry>
class CompatRing {
 public:
  CompatRing() = default;

  // Takes the ring at `at` if its header holds `magic`, exactly `size` entries and two indices;
  // else returns an invalid ring. The magic's acquire pairs with the release that laid it out.
  static CompatRing Attach(std::byte* at, std::uint32_t magic, std::uint32_t size) {
    auto* header = reinterpret_cast<CompatRingHeader*>(at);
    CompatRing ring;
    if (CompatWord(header->magic).load(std::memory_order_acquire) != magic) return ring;
    if (!IsPowerOfTwo(size) || CompatWord(header->size).load(std::memory_order_relaxed) != size)
      return ring;
    ring.head_ = CompatWord(header->head).load(std::memory_order_acquire);
    ring.tail_ = CompatWord(header->tail).load(std::memory_order_acquire);
    if (ring.head_ >= size || ring.tail_ >= size) return ring;
    ring.entries_ = reinterpret_cast<Entry*>(at + sizeof(CompatRingHeader));
    ring.header_ = header;
    ring.mask_ = size - 1;
    return ring;
  }

  bool valid() const { return header_ != nullptr; }
  CompatRingHeader& header() const { return *header_; }
  std::uint32_t head() const { return head_; }  // producer: own; consumer: last seen
  std::uint32_t tail() const { return tail_; }  // consumer: own; producer: last seen

  // Producer. kOk or kWasEmpty after publishing; kFull or kCorrupt without.
  CompatRingResult Push(const Entry& entry) {
    const std::uint32_t next = (head_ + 1) & mask_;
    if (const CompatRingResult space = Space(); space != CompatRingResult::kOk) return space;
    std::memcpy(&entries_[head_], &entry, sizeof(Entry));
    const std::uint32_t before = head_;
    head_ = next;
    CompatWord(header_->head).exchange(next, std::memory_order_seq_cst);  // pairs with Pop
    return CompatWord(header_->tail).load(std::memory_order_acquire) == before
               ? CompatRingResult::kWasEmpty
               : CompatRingResult::kOk;
  }
  // Producer. kOk when Push would find a free slot, else kFull or kCorrupt.
  CompatRingResult Space() {
    const std::uint32_t next = (head_ + 1) & mask_;
    if (next != tail_) return CompatRingResult::kOk;
    // Pairs with Pop; reloaded only when the last value seen says full.
    const std::uint32_t tail = CompatWord(header_->tail).load(std::memory_order_acquire);
    if (tail > mask_) return CompatRingResult::kCorrupt;
    tail_ = tail;
    return next == tail ? CompatRingResult::kFull : CompatRingResult::kOk;
  }
  // Producer. Whether the consumer has taken everything. Pairs with Pop: what the consumer
  // published elsewhere before it took the last entry is visible after true.
  bool Drained() const {
    return CompatWord(header_->tail).load(std::memory_order_acquire) == head_;
  }
  // Producer. Takes back everything the consumer has not taken; only while the protocol keeps the
  // consumer from popping. Returns how many entries, or kCorrupt as -1.
  int RewindHead() {
    const std::uint32_t tail = CompatWord(header_->tail).load(std::memory_order_acquire);
    if (tail > mask_) return -1;
    const std::uint32_t dropped = (head_ - tail) & mask_;
    head_ = tail_ = tail;
    CompatWord(header_->head).store(tail, std::memory_order_release);
    return static_cast<int>(dropped);
  }

  // Consumer. kOk with the oldest entry, taken; kEmpty; kCorrupt.
  CompatRingResult Pop(Entry& entry) {
    if (head_ == tail_) {
      if (const CompatRingResult look = Look(); look != CompatRingResult::kOk) return look;
    }
    std::memcpy(&entry, &entries_[tail_], sizeof(Entry));
    tail_ = (tail_ + 1) & mask_;
    CompatWord(header_->tail).store(tail_, std::memory_order_release);  // pairs with Space
    return CompatRingResult::kOk;
  }
  // Consumer. Whether everything published has been taken.
  bool Empty() { return head_ == tail_ && Look() == CompatRingResult::kEmpty; }
  // Consumer. Discards everything published so far; returns how many entries, or kCorrupt as -1.
  int SkipToHead() {
    if (Look() == CompatRingResult::kCorrupt) return -1;
    const std::uint32_t dropped = (head_ - tail_) & mask_;
    tail_ = head_;
    CompatWord(header_->tail).store(tail_, std::memory_order_release);
    return static_cast<int>(dropped);
  }

 private:
  // Consumer. Loads the producer's head once: kOk, kEmpty or kCorrupt. Sequentially consistent
  // because the look after CompatBell::Arm must not precede it.
  CompatRingResult Look() {
    const std::uint32_t head = CompatWord(header_->head).load(std::memory_order_seq_cst);
    if (head > mask_) return CompatRingResult::kCorrupt;
    head_ = head;
    return head == tail_ ? CompatRingResult::kEmpty : CompatRingResult::kOk;
  }

  CompatRingHeader* header_ = nullptr;
  Entry* entries_ = nullptr;  // [size]
  std::uint32_t mask_ = 0;    // size - 1
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

using CompatCommandRing = CompatRing<CompatCommand>;
using CompatResponseRing = CompatRing<CompatResponse>;
using CompatObsRing = CompatRing<CompatObs>;
using CompatActionRing = CompatRing<CompatAction>;

}  // namespace tetrion
