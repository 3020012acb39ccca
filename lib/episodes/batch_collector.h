#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/collect/worker_pool.h"
#include "lib/core/mutex.h"
#include "lib/envs/vec_env.h"
#include "lib/episodes/batch_pool.h"
#include "lib/episodes/episode_jobs.h"
#include "lib/episodes/episode_policy.h"
#include "lib/episodes/episode_sink.h"

namespace tetrion {

struct BatchCollectorConfig {
  EnvConfig env;               // lanes: of one worker; view: what the observers need
  int workers = 1;             // threads; 0 plays in the caller's thread, with few lanes at a time
  int steps = 1;               // K
  bool by_completion = false;  // episodes in the order they finish instead of by job
  bool double_buffer = false;  // two batches take turns; else the caller owns each batch
};

// What a worker is made of, called in the constructor for workers 0..n-1 (0 where n is 0).
struct WorkerParts {
  std::unique_ptr<ObsWriter> writer;
  std::unique_ptr<Policy> policy;              // exactly one of these two
  std::unique_ptr<ObservationPolicy> outside;  // is set
  // Or null. The last call on the worker's thread; only with workers. Must not throw.
  std::function<void()> on_drained;
};
using WorkerPartsFn = std::function<WorkerParts(int worker)>;

struct BatchOrder {
  int episodes = 0;                   // B, at least 1
  std::vector<std::int32_t> actions;  // [B, K] instead of the policy's; -1 ends an episode (not at
                                      // its first step), what follows is ignored; or empty
  std::int64_t first_token = -1;      // -1: where the stream stands; else replays these tokens
};

enum class [[nodiscard]] StartResult {
  kStarted,
  kBusy,    // another request runs, or the caller is a policy inside one
  kClosed,  // closed for good
};

struct CollectorStats {
  std::uint64_t requests = 0, episodes = 0, steps = 0;  // of finished requests
  std::uint64_t env_steps = 0, rows = 0;                // of all workers, unwanted ones included
  std::int64_t job_wait_ns = 0;                         // workers without a job, summed
  std::uint64_t next_token = 0;                         // of the stream
};

// Plays batches of episodes on workers of its own.
//
// Thread roles: one requester at a time calls Start, Wait, Finish and Cancel; any thread may call
// Close and stats, also a policy on a worker's thread.
class BatchCollector {
 public:
  // Throws Error(kUsage) for an unknown environment or view. The threads start here.
  BatchCollector(const BatchCollectorConfig& config, const WorkerPartsFn& parts);
  // Close, then joins. Never inside one of its own policies: see InsideCallback.
  ~BatchCollector();
  BatchCollector(const BatchCollector&) = delete;
  BatchCollector& operator=(const BatchCollector&) = delete;

  // Starts a request; returns at once. Throws Error(kTryAgain) without memory.
  StartResult Start(BatchOrder order);
  // True once every episode is there or the request failed; waits up to `timeout_ns` (without
  // workers it plays as long, and ends the row it is in).
  bool Wait(std::int64_t timeout_ns);
  // After Wait said true: the batch, of which the first B rows count, or throws what the policy
  // threw, or Error(kTryAgain) when the collector was closed meanwhile. Ends the request.
  // Without double_buffer the batch is the caller's until it lets go; with it, it is written again
  // by the next request but one; requests that fail do not count.
  std::shared_ptr<EpisodeBatch> Finish();
  // Ends a request that is not wanted any more; returns at once, also while a policy is busy.
  void Cancel();
  // 1 to 3: what the policy of the request that finished last returned; 0 with records' policies.
  int result_columns() const { return result_columns_; }

  // No request starts any more and a running one ends. Joins the workers, which lasts as long as
  // the policy calls they are in; inside such a call it only tells them. May be called often.
  void Close();
  // Close that waits at most `timeout_ns`: false while a worker is still in a policy call. Memory
  // that no batch holds is freed when it has succeeded and no request runs.
  bool CloseFor(std::int64_t timeout_ns);
  bool closed() const { return jobs_.stopped(); }
  bool InsideCallback() const { return EpisodePolicy::Inside(jobs_); }

  const EnvSpec& spec() const { return spec_; }
  std::size_t obs_bytes() const { return sinks_.front()->obs_bytes(); }
  // Actions that a mask is of; 0 where the environment has no masks.
  int mask_actions() const { return spec_.action.has_mask ? spec_.action.count : 0; }
  CollectorStats stats() const;

 private:
  struct Lent {
    std::shared_ptr<EpisodeBatch> batch;
    int oversized = 0;  // requests in a row for which it was
  };

  std::shared_ptr<EpisodeBatch> NextBatch(int episodes);
  std::unique_ptr<LaneLoop> MakeLoop(WorkerParts made);
  void CopyStaged();
  bool Done();
  void EndRequest();
  void LetGo();
  void FreeIdleMemory();
  void PlayHere(std::int64_t timeout_ns);

  const BatchCollectorConfig config_;
  const EnvSpec spec_;
  EpisodeJobs jobs_;
  std::vector<std::unique_ptr<EpisodeSink>> sinks_;  // a worker's
  std::unique_ptr<LaneLoop> own_loop_;               // without workers
  Mutex join_mu_;                                    // one joins at a time
  WorkerPool pool_;
  const std::shared_ptr<BatchPool> batches_;
  // With double_buffer; only the thread that has set busy_ touches them.
  Lent double_[2];
  int next_double_ = 0;              // the one not handed out last
  std::atomic<bool> joined_{false};  // the workers have ended

  std::atomic<bool> busy_{false};          // a request runs; exchanges take it and give it back
  std::shared_ptr<BatchRequest> request_;  // requester only
  int result_columns_ = 0;
  // Written by the requester, read by anyone.
  std::atomic<std::uint64_t> next_token_{0}, requests_{0}, episodes_{0}, steps_{0};
};

}  // namespace tetrion
