#include "lib/episodes/batch_pool.h"

#include <algorithm>
#include <utility>

namespace tetrion {
namespace {

constexpr std::size_t kMaxIdle = 2;  // a caller that drops a batch per request has two in turn
constexpr int kMaxOversize = 4;

}  // namespace

bool IsOversized(const EpisodeBatch& batch, int episodes) {
  return batch.capacity() / kMaxOversize > episodes;
}

std::shared_ptr<EpisodeBatch> BatchPool::Take(int episodes, int steps, std::size_t obs_bytes,
                                              int mask_actions) {
  std::unique_ptr<EpisodeBatch> batch = TakeIdle(episodes, steps, obs_bytes, mask_actions);
  if (batch != nullptr) {
    batch->MarkDirty();
  } else {
    batch = std::make_unique<EpisodeBatch>(episodes, steps, obs_bytes, mask_actions);
  }
  return {batch.release(), [pool = shared_from_this()](EpisodeBatch* used) {
            pool->Return(std::unique_ptr<EpisodeBatch>(used));
          }};
}

std::unique_ptr<EpisodeBatch> BatchPool::TakeIdle(int episodes, int steps, std::size_t obs_bytes,
                                                  int mask_actions) {
  std::unique_ptr<EpisodeBatch> batch;
  std::vector<IdleBatch> passed_over;  // unmapped outside the lock
  const MutexLock lock(mu_);
  takes_ += 1;
  const auto fits = std::find_if(idle_.begin(), idle_.end(), [&](const IdleBatch& idle) {
    return idle.batch->capacity() >= episodes && !IsOversized(*idle.batch, episodes) &&
           idle.batch->steps() == steps && idle.batch->obs_bytes() == obs_bytes &&
           idle.batch->mask_actions() == mask_actions;
  });
  if (fits != idle_.end()) {
    batch = std::move(fits->batch);
    idle_.erase(fits);
  }
  while (!idle_.empty() && takes_ - idle_.front().since > kMaxPassedOver) {
    passed_over.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
  }
  return batch;
}

void BatchPool::Return(std::unique_ptr<EpisodeBatch> batch) {
  std::unique_ptr<EpisodeBatch> oldest;  // unmapped outside the lock
  const MutexLock lock(mu_);
  if (closed_) {
    oldest = std::move(batch);
    return;
  }
  idle_.push_back({std::move(batch), takes_});
  if (idle_.size() <= kMaxIdle) return;
  oldest = std::move(idle_.front().batch);
  idle_.erase(idle_.begin());
}

void BatchPool::Close() {
  std::vector<IdleBatch> freed;  // outside the lock
  const MutexLock lock(mu_);
  closed_ = true;
  freed.swap(idle_);
}

int BatchPool::idle() const {
  const MutexLock lock(mu_);
  return static_cast<int>(idle_.size());
}

}  // namespace tetrion
