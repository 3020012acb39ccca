#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/core/align.h"
#include "lib/region_v2/compat_index.h"
#include "lib/region_v2/compat_layout.h"

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
//   3. `size` is validated at Attach and not read again. The peer's index is compared with size
//      before it touches an entry: with any content of the memory an access stays within the ring.
//   4. A peer's index that may be half written counts as not moved yet (compat_index.h).
//
// Ordering
//   head: sequentially consistent exchange in Push; its release pairs with the acquire in Peek (the
//         entry's bytes), its place in the total order with CompatBell's `asleep` word.
//   tail: release in Take pairs with acquire in Space (reuse of the entry's bytes).

enum class [[nodiscard]] CompatRingResult {
  kOk,
  kWasEmpty,  // pushed, and the consumer had taken everything before
  kFull,
  kEmpty,
  kCorrupt,  // the peer's index is no index
};

template <typename Entry>
class CompatRing {
 public:
  CompatRing() = default;

  // Takes the ring at `at` if its header holds `magic`, exactly `size` entries and two indices;
  // else returns an invalid ring. The magic's acquire pairs with the release that laid it out.
  static CompatRing Attach(std::byte* at, std::uint32_t magic, std::uint32_t size,
                           const Clock& clock = MonotonicClock::Get()) {
    auto* header = reinterpret_cast<CompatRingHeader*>(at);
    CompatRing ring;
    if (CompatWord(header->magic).load(std::memory_order_acquire) != magic) return ring;
    if (!IsPowerOfTwo(size) || CompatWord(header->size).load(std::memory_order_relaxed) != size)
      return ring;
    ring.head_ = CompatPeerIndex::Settled(header->head);
    ring.tail_ = CompatPeerIndex::Settled(header->tail);
    if (ring.head_ >= size || ring.tail_ >= size) return ring;
    ring.peer_head_ = {header->head, size - 1, ring.tail_, clock};  // the first Peek looks
    ring.peer_tail_ = {header->tail, size - 1, ring.tail_, clock};
    ring.entries_ = reinterpret_cast<Entry*>(at + sizeof(CompatRingHeader));
    ring.header_ = header;
    ring.mask_ = size - 1;
    return ring;
  }

  bool valid() const { return header_ != nullptr; }
  CompatRingHeader& header() const { return *header_; }
  std::uint32_t head() const { return head_; }  // the producer's own
  std::uint32_t tail() const { return tail_; }  // the consumer's own

  // Producer. kOk or kWasEmpty after publishing; kFull or kCorrupt without.
  CompatRingResult Push(const Entry& entry) {
    const std::uint32_t next = (head_ + 1) & mask_;
    if (const CompatRingResult space = Space(); space != CompatRingResult::kOk) return space;
    std::memcpy(&entries_[head_], &entry, sizeof(Entry));
    const std::uint32_t before = head_;
    head_ = next;
    CompatWord(header_->head).exchange(next, std::memory_order_seq_cst);  // pairs with Peek
    // Corrupt or not: the entry is out; Space says the rest when the next one has no room.
    static_cast<void>(peer_tail_.Refresh());
    return peer_tail_.seen() == before ? CompatRingResult::kWasEmpty : CompatRingResult::kOk;
  }
  // Producer. kOk when Push would find a free slot, else kFull or kCorrupt.
  CompatRingResult Space() {
    const std::uint32_t next = (head_ + 1) & mask_;
    if (next != peer_tail_.seen()) return CompatRingResult::kOk;
    // Pairs with Take; looked at again only where the last tail seen says full.
    if (peer_tail_.Refresh() == CompatPeerIndex::Look::kCorrupt) return CompatRingResult::kCorrupt;
    return next == peer_tail_.seen() ? CompatRingResult::kFull : CompatRingResult::kOk;
  }
  // Producer. Whether the consumer has taken everything. Pairs with Take: what the consumer
  // published elsewhere before it took the last entry is visible after true.
  bool Drained() const { return CompatPeerIndex::Settled(header_->tail) == head_; }
  // Producer. Takes back everything the consumer has not taken; only while the protocol keeps the
  // consumer from popping. Returns how many entries, or kCorrupt as -1.
  int RewindHead() {
    const std::uint32_t tail = CompatPeerIndex::Settled(header_->tail);
    if (tail > mask_) return -1;
    const std::uint32_t dropped = (head_ - tail) & mask_;
    head_ = tail;
    peer_tail_.Forget(tail);
    CompatWord(header_->head).store(tail, std::memory_order_release);
    return static_cast<int>(dropped);
  }

  // Consumer. kOk with a copy of the oldest entry, which Take takes; kEmpty; kCorrupt.
  CompatRingResult Peek(Entry& entry) {
    if (peer_head_.seen() == tail_) {
      if (peer_head_.Refresh() == CompatPeerIndex::Look::kCorrupt)
        return CompatRingResult::kCorrupt;
      if (peer_head_.seen() == tail_) return CompatRingResult::kEmpty;
    }
    std::memcpy(&entry, &entries_[tail_], sizeof(Entry));
    return CompatRingResult::kOk;
  }
  // Consumer. As Peek, by a fresh look at the head: for an entry that cannot be meant.
  CompatRingResult PeekAgain(Entry& entry) {
    peer_head_.Forget(tail_);
    return Peek(entry);
  }
  // Consumer. After a Peek that said kOk.
  void Take() {
    tail_ = (tail_ + 1) & mask_;
    CompatWord(header_->tail).store(tail_, std::memory_order_release);  // pairs with Space
  }
  // Consumer. Peek and Take.
  CompatRingResult Pop(Entry& entry) {
    const CompatRingResult peeked = Peek(entry);
    if (peeked == CompatRingResult::kOk) Take();
    return peeked;
  }
  // Consumer. Whether everything published has been taken.
  bool Empty() {
    return peer_head_.seen() == tail_ && CompatPeerIndex::Settled(header_->head) == tail_;
  }
  // Consumer. Discards everything published so far; returns how many entries, or kCorrupt as -1.
  int SkipToHead() {
    const std::uint32_t head = CompatPeerIndex::Settled(header_->head);
    if (head > mask_) return -1;
    const std::uint32_t dropped = (head - tail_) & mask_;
    tail_ = head;
    peer_head_.Forget(head);
    CompatWord(header_->tail).store(tail_, std::memory_order_release);
    return static_cast<int>(dropped);
  }

 private:
  CompatRingHeader* header_ = nullptr;
  Entry* entries_ = nullptr;   // [size]
  std::uint32_t mask_ = 0;     // size - 1
  std::uint32_t head_ = 0;     // producer
  CompatPeerIndex peer_tail_;  // producer
  std::uint32_t tail_ = 0;     // consumer
  CompatPeerIndex peer_head_;  // consumer
};

using CompatCommandRing = CompatRing<CompatCommand>;
using CompatResponseRing = CompatRing<CompatResponse>;
using CompatObsRing = CompatRing<CompatObs>;
using CompatActionRing = CompatRing<CompatAction>;

}  // namespace tetrion
