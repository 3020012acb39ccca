#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/core/mutex.h"
#include "lib/episodes/episode_batch.h"

namespace tetrion {

// Who keeps finished episodes until the requester has copied them out (order by completion).
class StagedRows {
 public:
  virtual ~StagedRows() = default;
  // The requester has copied `row`: it may be played into again. Any thread.
  virtual void Release(int row) = 0;
};

class EpisodeJobs;

// One request of B episodes: jobs 0..B-1 of it are tokens first_token + job of the stream.
//
// Thread roles: the requester makes it, waits and cancels; workers play its jobs. Workers hold on
// to it, and so to its batch, until they have no lane in it, also when the requester left long ago.
struct BatchRequest {
  // Immutable once started.
  int episodes = 0;  // B
  int steps = 0;     // K
  std::uint64_t first_token = 0;
  int max_lanes_per_worker = 1;       // so that few jobs are spread over the workers
  bool by_completion = false;         // finished episodes are staged, not written into the batch
  std::vector<std::int32_t> actions;  // [B, K] given in advance, -1 ends an episode; or empty
  // Collectors in whose callbacks the requester is: it cannot wait for their workers, and neither
  // can this request's callbacks, for which the requester waits.
  std::vector<const EpisodeJobs*> inside_of;
  EpisodeBatch* batch = nullptr;  // owned by `owner`; written by workers unless by_completion
  // Guarded by the requester: it takes the batch out when every episode is finished.
  std::shared_ptr<EpisodeBatch> owner;

  // Shared.
  std::atomic<bool> cancelled{false};  // set once, under mu; relaxed, a row late does not matter
  std::atomic<int> result_columns{0};  // what the policy returned first: 0 nothing yet, 1..3

  struct Staged {
    StagedRows* keeper;
    EpisodeBatch* batch;
    int row;
  };
  // A worker's news of one episode. False when the request was cancelled: the row is the worker's.
  bool FinishInPlace() TETRION_EXCLUDES(mu);
  bool FinishStaged(const Staged& staged) TETRION_EXCLUDES(mu);
  // The first failure counts; cancels.
  void Fail(std::exception_ptr failure) TETRION_EXCLUDES(mu);
  // Requester: nothing more is wanted. Staged rows go back to their keepers.
  void Cancel() TETRION_EXCLUDES(mu);
  // Steps the token of `job` may take: K, or up to its given actions' end.
  std::uint32_t MaxSteps(int job) const;

  Mutex mu;
  CondVar changed;
  int finished TETRION_GUARDED_BY(mu) = 0;
  std::exception_ptr error TETRION_GUARDED_BY(mu);
  std::vector<Staged> staged TETRION_GUARDED_BY(mu);  // in the order of completion
};

// The jobs of the running request, shared by all workers. Holds at most one request's; workers
// without a job block here and do not spin.
class EpisodeJobs {
 public:
  // Requester. `request` replaces what was there.
  void Start(std::shared_ptr<BatchRequest> request);
  // Requester. Jobs not taken yet are dropped if they are of `request`.
  void Drop(const BatchRequest& request);
  // Any thread. Every Take says kDrain from now on.
  void Stop();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Worker: the next job, waiting up to `timeout_ns` for one; kToken, kTimeout or kDrain. A worker
  // with lanes in play names their request as `bound` and gets no job of another.
  TakeResult Take(const BatchRequest* bound, std::shared_ptr<BatchRequest>& request, int& job,
                  std::int64_t timeout_ns);

 private:
  Mutex mu_;
  CondVar changed_;
  std::shared_ptr<BatchRequest> request_ TETRION_GUARDED_BY(mu_);
  int next_job_ TETRION_GUARDED_BY(mu_) = 0;
  // Written under mu_; read without it where a row late does not matter.
  std::atomic<bool> any_{false};
  std::atomic<bool> stopped_{false};
};

}  // namespace tetrion
