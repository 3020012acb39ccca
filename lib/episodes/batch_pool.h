#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/episodes/episode_batch.h"

namespace tetrion {

// A batch that so many requests in a row had no use for is kept, since requests may be of two sizes
// in turn; the next one frees it.
inline constexpr int kMaxPassedOver = 2;

// Whether the batch would keep much more memory than so many episodes need.
bool IsOversized(const EpisodeBatch& batch, int episodes);

// Batches that come back when their last holder lets go, so that the next request need not touch
// fresh pages. Keeps the two that came back last, and none that requests pass over. Any thread.
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
  struct IdleBatch {
    std::unique_ptr<EpisodeBatch> batch;
    std::uint64_t since;  // `takes_` when it came back
  };

  // Null where none fits.
  std::unique_ptr<EpisodeBatch> TakeIdle(int episodes, int steps, std::size_t obs_bytes,
                                         int mask_actions);
  void Return(std::unique_ptr<EpisodeBatch> batch);

  mutable Mutex mu_;
  std::vector<IdleBatch> idle_ TETRION_GUARDED_BY(mu_);  // the oldest first
  std::uint64_t takes_ TETRION_GUARDED_BY(mu_) = 0;
  bool closed_ TETRION_GUARDED_BY(mu_) = false;
};

}  // namespace tetrion
