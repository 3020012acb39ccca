#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/core/text_forms.h"
#include "lib/wire/messages.h"
#include "lib/wire/remote_path.h"

namespace tetrion::learner {

// A ring that ended; its slot is free. It is drained, and its file removed, unless it could not be
// attached and its actor lives.
struct EndedRing {
  std::string path;
  std::uint64_t owner = 0;  // as in wire::RingInfo
  wire::RingEnd end = wire::RingEnd::kClosed;
  std::string reason;  // why it cannot be used, for people; empty when it was closed
  // A local ring's file is made once: it has ended for each session that claims it later, too.
  bool Is(const wire::RingInfo& ring) const {
    return ring.path == path && (ring.owner == owner || !wire::IsRemoteRingPath(path));
  }
};

// Where link and ingest meet: which rings there should be, which have ended. Any thread.
class RingBoard {
 public:
  // Link: the coordinator's list.
  void SetList(std::uint64_t revision, std::vector<wire::RingInfo> rings) {
    MutexLock lock(mu_);
    revision_ = revision;
    rings_ = std::move(rings);
    ++changes_;
  }
  // Ingest: copies the list if it changed since `seen`.
  bool TakeList(std::uint64_t& seen, std::vector<wire::RingInfo>& rings) const {
    MutexLock lock(mu_);
    if (changes_ == seen) return false;
    seen = changes_;
    rings = rings_;
    return true;
  }
  // Ingest: a ring has ended; told to the coordinator until its list lacks it. The reason is cut to
  // what a message takes.
  void AddEnded(EndedRing ring) {
    if (ring.reason.size() > wire::kMaxReasonBytes) ring.reason.resize(wire::kMaxReasonBytes);
    while (!IsPlainText(ring.reason)) ring.reason.pop_back();  // the empty text is plain
    MutexLock lock(mu_);
    ended_.push_back(std::move(ring));
  }
  // Link: rings that ended and are still in the list.
  std::vector<EndedRing> Ended() const {
    MutexLock lock(mu_);
    return ended_;
  }
  void ForgetEndedExcept(const std::vector<wire::RingInfo>& listed) {
    MutexLock lock(mu_);
    std::erase_if(ended_, [&](const EndedRing& ended) {
      for (const wire::RingInfo& ring : listed) {
        if (ended.Is(ring)) return false;
      }
      return true;
    });
  }
  std::uint64_t revision() const {
    MutexLock lock(mu_);
    return revision_;
  }
  // Every listed ring has ended.
  bool AllEnded() const {
    MutexLock lock(mu_);
    std::size_t ended_and_listed = 0;
    for (const EndedRing& ended : ended_) {
      for (const wire::RingInfo& ring : rings_) {
        if (ended.Is(ring)) ++ended_and_listed;
      }
    }
    return ended_and_listed == rings_.size();
  }
  // No ring is listed: nothing more will come unless an actor joins.
  bool Empty() const {
    MutexLock lock(mu_);
    return rings_.empty();
  }

 private:
  mutable Mutex mu_;
  std::uint64_t revision_ TETRION_GUARDED_BY(mu_) = 0;
  std::uint64_t changes_ TETRION_GUARDED_BY(mu_) = 0;
  std::vector<wire::RingInfo> rings_ TETRION_GUARDED_BY(mu_);
  std::vector<EndedRing> ended_ TETRION_GUARDED_BY(mu_);
};

// One streamed worker's ring as ingest and inference share it: inference answers rows, ingest moves
// the answered ones into the replay and releases them.
struct StreamShare {
  StreamShare(std::string stream_path, std::uint64_t tail)
      : path(std::move(stream_path)), first(tail), answered(tail) {}

  const std::string path;
  // Inference. Rows below are void: published for a learner that is gone.
  std::atomic<std::uint64_t> first;
  // Inference. Rows below are complete or void; the release pairs with ingest's acquire, which then
  // may read them and `first`.
  std::atomic<std::uint64_t> answered;
  // Inference. The stream cannot be answered any more; the release pairs with ingest's acquire,
  // which then may read `problem`.
  std::atomic<bool> broken{false};
  std::string problem;
  // Ingest. The ring has ended.
  std::atomic<bool> ended{false};
};

// Where ingest leaves the streams it has attached for inference to find. Any thread.
class StreamBoard {
 public:
  void Add(std::shared_ptr<StreamShare> share) {
    MutexLock lock(mu_);
    fresh_.push_back(std::move(share));
    any_.store(true, std::memory_order_release);  // pairs with Take
  }
  // Streams added since the last call.
  std::vector<std::shared_ptr<StreamShare>> Take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    MutexLock lock(mu_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(fresh_, {});
  }

 private:
  std::atomic<bool> any_{false};
  Mutex mu_;
  std::vector<std::shared_ptr<StreamShare>> fresh_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::learner
