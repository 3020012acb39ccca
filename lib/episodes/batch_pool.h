#pragma once

#include <memory>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/episodes/episode_batch.h"

namespace tetrion {

// Batches that come back when their last holder lets go, so that the next request need not touch
// fresh pages. Keeps the two that came back last. Any thread.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  // A batch for `episodes`, wholly dirty if it was used before. Throws Error(kTryAgain) without
  // memory. The pool lives as long as any batch of it.
  std::shared_ptr<EpisodeBatch> Take(int episodes, int steps, std::size_t obs_bytes,
                                     int mask_actions = 0);
  int idle() const;
  // Frees what is here, and from now on what comes back.
  void Close();

 private:
  void Return(std::unique_ptr<EpisodeBatch> batch);

  mutable Mutex mu_;
  std::vector<std::unique_ptr<EpisodeBatch>> idle_ TETRION_GUARDED_BY(mu_);
  bool closed_ TETRION_GUARDED_BY(mu_) = false;
};

}  // namespace tetrion
