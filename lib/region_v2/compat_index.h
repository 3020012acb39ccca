#pragma once

#include <atomic>
#include <cstdint>

#include "lib/core/clock.h"

namespace tetrion {

inline std::atomic_ref<std::uint32_t> CompatWord(std::uint32_t& word) {
  return std::atomic_ref<std::uint32_t>(word);
}

inline void CompatPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One end's view of the index that the other end of a ring stores.
//
// The format asks for one aligned 32-bit store per index. Other programs do worse: Python's
// struct.pack_into, for one, zeroes the word, then fills it byte by byte, and a reader in
// between finds 0 or the index without some of its bytes: a number below the index. So an index
// that goes up, or from the last slot to the first, is believed at once, which is all that the
// reader of a busy ring pays for. An index that goes down by any other way has wrapped or is half
// written, and is read again after a pause. A 0 could even then be that of a writer whose core was
// taken away: it is believed once it has stood for kDoubtNs.
//
// Thread role: the thread of the end that reads. Memory and clock are the caller's.
class CompatPeerIndex {
 public:
  enum class [[nodiscard]] Look {
    kSure,     // seen() is what was read
    kInDoubt,  // seen() is as before; look again
    kCorrupt,  // no index of this ring
  };
  static constexpr std::int64_t kDoubtNs = 20 * kNanosPerMilli;

  CompatPeerIndex() = default;
  CompatPeerIndex(std::uint32_t& word, std::uint32_t mask, std::uint32_t seen, const Clock& clock)
      : word_(&word), mask_(mask), seen_(seen), clock_(&clock) {}

  // The last index believed.
  std::uint32_t seen() const { return seen_; }
  // Goes on from `seen`, without what was doubted.
  void Forget(std::uint32_t seen) {
    seen_ = seen;
    in_doubt_ = false;
  }

  // Loads the index. Sequentially consistent because a consumer's look after CompatBell::Arm must
  // not precede it; its acquire pairs with the release of the end that stores.
  Look Refresh() {
    const std::uint32_t index = CompatWord(*word_).load(std::memory_order_seq_cst);
    if (index > mask_) [[unlikely]]
      return Look::kCorrupt;
    if (index < seen_ && ((index - seen_) & mask_) > 1) [[unlikely]]
      return Judge(index);
    return Believe(index);
  }

  // The index in `word` as two reads in a row have it, for rare uses where the other end should be
  // quiet. May be beyond the ring.
  static std::uint32_t Settled(std::uint32_t& word) {
    std::uint32_t index = CompatWord(word).load(std::memory_order_acquire);
    for (int i = 0; i < kReads; ++i) {
      Pause();
      const std::uint32_t again = CompatWord(word).load(std::memory_order_acquire);
      if (again == index) break;
      index = again;
    }
    return index;
  }

 private:
  static constexpr int kReads = 8;    // bounds the search for two equal reads
  static constexpr int kPauses = 32;  // about 1 us, many times what a writer needs

  static void Pause() {
    for (int i = 0; i < kPauses; ++i) CompatPause();
  }

  Look Believe(std::uint32_t index) {
    in_doubt_ = false;
    seen_ = index;
    return Look::kSure;
  }

  Look Judge(std::uint32_t index) {
    Pause();
    const bool stands = CompatWord(*word_).load(std::memory_order_acquire) == index;
    if (stands && index != 0) return Believe(index);
    const std::int64_t now_ns = clock_->NowNs();
    if (!stands || !in_doubt_) since_ns_ = now_ns;
    in_doubt_ = true;
    return now_ns - since_ns_ < kDoubtNs ? Look::kInDoubt : Believe(index);
  }

  std::uint32_t* word_ = nullptr;
  std::uint32_t mask_ = 0;  // size - 1
  std::uint32_t seen_ = 0;
  bool in_doubt_ = false;      // the last look found a 0 that is not believed yet
  std::int64_t since_ns_ = 0;  // when the first of these looks was
  const Clock* clock_ = nullptr;
};

}  // namespace tetrion
