#include "lib/region_v2/compat_wait.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "lib/core/cpu_count.h"
#include "lib/shm/bell.h"

namespace tetrion {
namespace {

// Polls before the first yield where the peer runs on a core of its own: about 100 us, several
// times the answer of a peer that is awake.
constexpr int kSpins = 4000;

// A yield that takes longer has run another thread.
constexpr std::int64_t kYieldAloneNs = 3'000;
constexpr int kFewestSpins = 512;  // of spins: a share so small where the peer needs our core

class FutexSleeper final : public CompatSleeper {
 public:
  void Sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
             std::int64_t timeout_ns) override {
    // Whatever ends the sleep, the caller polls again.
    static_cast<void>(FutexWait(word, expected, timeout_ns));
  }
  void Yield() override { sched_yield(); }
};

CompatSleeper& DefaultSleeper() {
  static FutexSleeper sleeper;
  return sleeper;
}

// An end that may use one core alone may still have its peer on another: where it does not, it soon
// spins less. A control group's time is both ends' where they share the group.
int SpinsOf(const CompatWaitConfig& config) {
  if (config.spins >= 0) return config.spins;
  return sysconf(_SC_NPROCESSORS_ONLN) > 1 && QuotaCpus() != 1 ? kSpins : 0;
}

}  // namespace

const char* CompatResultName(CompatResult result) {
  switch (result) {
    case CompatResult::kOk:
      return "ok";
    case CompatResult::kIdle:
      return "idle";
    case CompatResult::kTimeout:
      return "timeout";
    case CompatResult::kPeerLost:
      return "peer_lost";
    case CompatResult::kStopped:
      return "stopped";
    case CompatResult::kCorrupt:
      return "corrupt";
    case CompatResult::kSeqError:
      return "seq_error";
    case CompatResult::kRefused:
      return "refused";
    case CompatResult::kBusy:
      return "busy";
  }
  return "unknown";
}

CompatWaiter::CompatWaiter(const CompatEndConfig& config, CompatBell& mine_bell,
                           CompatBell& other_bell, const CompatLifeSigns& mine,
                           const CompatLifeSigns& peers, CompatStats& stats)
    : config_(config.wait),
      clock_(ClockOf(config)),
      sleeper_(config.sleeper != nullptr ? *config.sleeper : DefaultSleeper()),
      stop_(config.stop),
      spins_(SpinsOf(config.wait)),
      bell_(mine_bell),
      other_(other_bell),
      mine_(mine),
      peers_(peers),
      stats_(stats),
      limit_(spins_) {
  bell_.Disarm();  // an end that died asleep left its word set
}

void CompatWaiter::Heartbeat() {
  for (std::uint32_t* beat : mine_.beat) {
    if (beat == nullptr) continue;
    // One writer each; 0 means "no heartbeat", so the wrap passes over it.
    const std::uint32_t next = CompatWord(*beat).load(std::memory_order_relaxed) + 1;
    CompatWord(*beat).store(next == 0 ? 1 : next, std::memory_order_relaxed);
  }
}

std::uint64_t CompatWaiter::PeerSigns() const {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < CompatLifeSigns::kRings; ++i) {
    for (std::uint32_t* word : {peers_.beat[i], peers_.index[i]}) {
      if (word == nullptr) continue;
      digest = (digest + CompatWord(*word).load(std::memory_order_relaxed)) * 0x9E3779B97F4A7C15ULL;
    }
  }
  return digest;
}

CompatResult CompatWaiter::Watch(const Deadline& deadline, std::int64_t now_ns) {
  const std::uint64_t signs = PeerSigns();
  if (!peer_known_ || signs != peer_signs_) {
    peer_known_ = true;
    peer_signs_ = signs;
    peer_moved_ns_ = now_ns;
  }
  watched_ns_ = now_ns;
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return CompatResult::kStopped;
  if (now_ns - peer_moved_ns_ >= config_.peer_timeout_ns) {
    peer_known_ = false;  // the next wait has the whole time again
    return CompatResult::kPeerLost;
  }
  return deadline.Passed() ? CompatResult::kTimeout : CompatResult::kOk;
}

CompatResult CompatWaiter::Rest(const Deadline& deadline) {
  Heartbeat();
  const std::int64_t now_ns = clock_.NowNs();
  if (!resting_) {
    resting_ = true;
    ++stats_.waits;
    nap_ns_ = config_.first_nap_ns;
    // Waits that time out follow each other; what the caller did in between does not count.
    peer_moved_ns_ += now_ns - watched_ns_;
    other_.Flush(stats_);
  }
  if (const CompatResult result = Watch(deadline, now_ns); result != CompatResult::kOk) {
    End();
    polls_ = 0;
    return result;
  }
  if (polls_ < limit_ + config_.yields) {
    Yield();
  } else if (!armed_) {
    other_.Nudge(stats_);
    expected_ = bell_.Arm();
    armed_ = true;
  } else {
    Nap(deadline);
  }
  return CompatResult::kOk;
}

// Where both ends share a core, spinning only keeps the peer from answering: less of it next time.
void CompatWaiter::Yield() {
  ++polls_;
  const std::int64_t before_ns = clock_.NowNs();
  sleeper_.Yield();
  if (clock_.NowNs() - before_ns < kYieldAloneNs) return;
  const int fewer = std::max(limit_ / 2, (spins_ + kFewestSpins - 1) / kFewestSpins);
  polls_ -= limit_ - std::min(limit_, fewer);  // as many yields are left as before
  limit_ = std::min(limit_, fewer);
}

void CompatWaiter::Nap(const Deadline& deadline) {
  const std::int64_t lost_in_ns = peer_moved_ns_ + config_.peer_timeout_ns - clock_.NowNs();
  const std::int64_t nap_ns =
      std::min({nap_ns_, deadline.LeftNs(), std::max(lost_in_ns, std::int64_t{1})});
  nap_ns_ = std::min(2 * nap_ns_, config_.longest_nap_ns);
  ++stats_.sleeps;
  sleeper_.Sleep(bell_.word(), expected_, nap_ns);
  expected_ = bell_.Arm();
}

void CompatWaiter::End() {
  if (armed_) bell_.Disarm();
  armed_ = false;
  resting_ = false;
}

}  // namespace tetrion
