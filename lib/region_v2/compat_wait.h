#pragma once

#include <array>
#include <cstdint>

#include "lib/core/clock.h"
#include "lib/region_v2/compat_bell.h"
#include "lib/region_v2/compat_end.h"

namespace tetrion {

// The words by which one end shows the other that it lives, in the headers of all four rings: its
// heartbeats and the indices it stores. Words of an absent stream ring are null.
struct CompatLifeSigns {
  static constexpr std::size_t kRings = 4;
  std::array<std::uint32_t*, kRings> beat = {};
  std::array<std::uint32_t*, kRings> index = {};
};

// How an end waits: spin, yield, sleep on its doorbell; watches the peer meanwhile and shows its
// own heartbeats. Used by the end's thread only. Call Spin after an empty poll; when it returns
// false call Rest, then poll again. Call Done after a poll that found something.
class CompatWaiter {
 public:
  // `mine_bell` is what this end sleeps on, `other_bell` what it rings: batches still held back
  // are rung before this end rests. Everything passed by reference must outlive this.
  CompatWaiter(const CompatEndConfig& config, CompatBell& mine_bell, CompatBell& other_bell,
               const CompatLifeSigns& mine, const CompatLifeSigns& peers, CompatStats& stats);

  // True: poll again at once. False: this end has spun enough.
  bool Spin() {
    if (polls_ >= limit_) return false;
    ++polls_;
    CompatPause();
    return true;
  }
  // Yields, announces a sleep (the next poll is the re-check) or sleeps. kOk: poll again;
  // kTimeout: `deadline` has passed; kPeerLost, kStopped. Any result but kOk ends the wait.
  CompatResult Rest(const Deadline& deadline);
  // The poll found something.
  void Done() {
    if (resting_) [[unlikely]]
      End();
    else if (polls_ > 0 && limit_ < spins_) [[unlikely]]
      limit_ += kLimitGrowth;  // who answers while we spin runs on another core
    peer_known_ = false;
    polls_ = 0;
  }

  // Adds one to this end's heartbeats.
  void Heartbeat();
  // A digest of the peer's words: it changes whenever one of them does.
  std::uint64_t PeerSigns() const;

 private:
  static constexpr int kLimitGrowth = 16;

  CompatResult Watch(const Deadline& deadline, std::int64_t now_ns);
  void Yield();
  void Nap(const Deadline& deadline);
  void End();

  const CompatWaitConfig config_;
  const Clock& clock_;
  CompatSleeper& sleeper_;
  const std::atomic<bool>* const stop_;
  const int spins_;
  CompatBell& bell_;
  CompatBell& other_;
  const CompatLifeSigns& mine_;
  const CompatLifeSigns& peers_;
  CompatStats& stats_;

  int limit_;      // polls before the first yield, learned: spins_ / 512 to about spins_
  int polls_ = 0;  // of this wait, up to the first nap
  bool resting_ = false;
  bool armed_ = false;
  std::uint32_t expected_ = 0;  // doorbell word at Arm
  std::int64_t nap_ns_ = 0;
  bool peer_known_ = false;         // peer_signs_ and peer_moved_ns_ stem from this wait
  std::uint64_t peer_signs_ = 0;    // as last seen
  std::int64_t peer_moved_ns_ = 0;  // when they last changed; time spent elsewhere not counted
  std::int64_t watched_ns_ = 0;     // last look
};

}  // namespace tetrion
