#include "lib/episodes/batch_pool.h"

#include <algorithm>
#include <utility>

namespace tetrion {
namespace {

constexpr std::size_t kMaxIdle = 2;  // a caller that drops a batch per request has two in turn
// A batch much larger than asked for would keep memory that no request needs.
constexpr int kMaxOversize = 4;

}  // namespace

std::shared_ptr<EpisodeBatch> BatchPool::Take(int episodes, int steps, std::size_t obs_bytes,
                                              int mask_actions) {
  std::unique_ptr<EpisodeBatch> batch;
  {
    const MutexLock lock(mu_);
    const auto fits = std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) {
      return idle->capacity() >= episodes && idle->capacity() / kMaxOversize <= episodes &&
             idle->steps() == steps && idle->obs_bytes() == obs_bytes &&
             idle->mask_actions() == mask_actions;
    });
    if (fits != idle_.end()) {
      batch = std::move(*fits);
      idle_.erase(fits);
    }
  }
  if (batch != nullptr) {
    batch->MarkDirty();
  } else {
    batch = std::make_unique<EpisodeBatch>(episodes, steps, obs_bytes, mask_actions);
  }
  return {batch.release(), [pool = shared_from_this()](EpisodeBatch* used) {
            pool->Return(std::unique_ptr<EpisodeBatch>(used));
          }};
}

void BatchPool::Return(std::unique_ptr<EpisodeBatch> batch) {
  std::unique_ptr<EpisodeBatch> oldest;  // unmapped outside the lock
  const MutexLock lock(mu_);
  if (closed_) {
    oldest = std::move(batch);
    return;
  }
  idle_.push_back(std::move(batch));
  if (idle_.size() <= kMaxIdle) return;
  oldest = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

void BatchPool::Close() {
  std::vector<std::unique_ptr<EpisodeBatch>> freed;  // outside the lock
  const MutexLock lock(mu_);
  closed_ = true;
  freed.swap(idle_);
}

int BatchPool::idle() const {
  const MutexLock lock(mu_);
  return static_cast<int>(idle_.size());
}

}  // namespace tetrion
