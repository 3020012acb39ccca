#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/shm/ring_producer.h"

namespace tetrion::learner {

// A longer time between two looks of a thread is a stall of its own: no actor can be heard in it.
inline constexpr std::int64_t kStallNs = kNanosPerSecond;

// The learner's ring of one remote worker, as the rows thread, which writes it, and ingest, which
// reads it, share it. The memory goes with the last of them.
struct RemoteStream {
  explicit RemoteStream(RingProducer ring) : producer(std::move(ring)) {}

  // Rows thread, and ingest once, before its first look, to make its own end.
  RingProducer producer;
  // Rows thread: the actor is silent, nothing follows what is published. The release pairs with
  // ingest's acquire, which then looks at the ring once more.
  std::atomic<bool> silent{false};
  // Rows thread: the actor said something impossible. The release pairs with ingest's acquire,
  // which then may read `problem`.
  std::atomic<bool> broken{false};
  std::string problem;
  // Ingest: it has taken its last row. The release pairs with the rows thread's acquire.
  std::atomic<bool> ended{false};
};

// Where ingest, which knows from the coordinator which remote rings there should be, and the rows
// thread, which hears their actors, meet. A ring is expected from when it is listed until it is
// taken or forgotten; opened in between; the memory of rings is thus bounded by the list. Any
// thread.
//
//   listed: Expect ──▶ actor opens it: Offer ──▶ Take ──▶ ingest reads
//             └──▶ actor's rows are no rows of this run: Refuse ──▶ Refusal: given up
class RemoteBoard {
 public:
  // --- ingest thread ---
  void Expect(const std::string& path) {
    MutexLock lock(mu_);
    expected_.try_emplace(path);
  }
  // The ring is listed no longer, or was given up; a stream offered for it ends.
  void Forget(const std::string& path) {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    if (found == expected_.end()) return;
    if (found->second.stream) found->second.stream->ended.store(true, std::memory_order_release);
    expected_.erase(found);
  }
  // The stream, once its actor has opened it: then the path is expected no longer. Else null.
  std::shared_ptr<RemoteStream> Take(const std::string& path) {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    if (found == expected_.end() || !found->second.stream) return nullptr;
    std::shared_ptr<RemoteStream> stream = std::move(found->second.stream);
    expected_.erase(found);
    return stream;
  }
  // The listed paths whose owners' sessions have ended: their actors, unless they come back with
  // another session, are dead.
  void SetOwnerless(std::set<std::string> paths) {
    MutexLock lock(mu_);
    ownerless_ = std::move(paths);
  }
  // Why the ring can never be opened; empty: it may.
  std::string Refusal(const std::string& path) const {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    return found == expected_.end() ? "" : found->second.refusal;
  }

  // --- rows thread ---
  bool Ownerless(const std::string& path) const {
    MutexLock lock(mu_);
    return ownerless_.contains(path);
  }
  bool Expects(const std::string& path) const {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    return found != expected_.end() && !found->second.stream;
  }
  // False when the path is expected no longer.
  [[nodiscard]] bool Offer(const std::string& path, std::shared_ptr<RemoteStream> stream) {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    if (found == expected_.end()) return false;
    found->second.stream = std::move(stream);
    return true;
  }
  void Refuse(const std::string& path, const std::string& reason) {
    MutexLock lock(mu_);
    const auto found = expected_.find(path);
    if (found != expected_.end()) found->second.refusal = reason;
  }

 private:
  struct Expected {
    std::shared_ptr<RemoteStream> stream;  // null until opened
    std::string refusal;
  };

  mutable Mutex mu_;
  std::map<std::string, Expected> expected_ TETRION_GUARDED_BY(mu_);  // by path
  std::set<std::string> ownerless_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::learner
