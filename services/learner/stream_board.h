#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/mutex.h"

namespace tetrion::learner {

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
