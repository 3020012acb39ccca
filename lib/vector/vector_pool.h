#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/vector/lanes.h"

namespace tetrion {

enum class PoolStatus {
  kOk,
  kTimeout,    // the wait's time is over; try again
  kClosed,     // Close was called
  kForked,     // made before a fork: who played it is in the parent process only
  kTooFew,     // fewer environments are stepping than were waited for
  kNoSuchEnv,  // below: `item` of the call is at fault, nothing was sent
  kBusy,       // still stepping, or its result has not been received
  kTwice,      // named by an earlier item of the call, too
  kNotReset,   // sent an action before the first reset
  kBadAction,  // out of range
  kBadState,   // not bytes of Save, or of another configuration
};

struct [[nodiscard]] PoolResult {
  PoolStatus status = PoolStatus::kOk;
  std::size_t item = 0;     // index into the call's environments
  std::int32_t action = 0;  // of kBadAction, as it was read
};

// Environments stepped by threads that each own a range of them. Results are taken in the order in
// which they finish, in batches of any size.
//
// Thread roles: Reset, Send and Receive may be called by any threads; Play runs on the pool's
// threads, or in Reset and Send when there are none. Close may be called by any thread at any time.
//
// Invariants: 1. An environment is unset, held by the caller, stepping or ready; only held ones can
// be sent, only ready ones be received. 2. Only the owner of a stepping environment touches it and
// its row of columns(). 3. columns() of an environment do not change while it is held.
class VectorPool {
 public:
  // `threads` 0 plays in the caller's thread. Throws Error(kUsage) for an unknown environment or
  // observation, or counts out of range; std::system_error where a thread cannot be started.
  VectorPool(const PyEnvConfig& config, int count, int threads);
  ~VectorPool();
  VectorPool(const VectorPool&) = delete;
  VectorPool& operator=(const VectorPool&) = delete;

  // Starts the next episode of `envs`, of the given seeds or, with `seeds` null, of those they
  // have.
  PoolResult Reset(std::span<const int> envs, const std::uint64_t* seeds) TETRION_EXCLUDES(mu_);
  // `actions` is [envs]; environments whose episode has ended ignore theirs and start over. Other
  // threads may write to it meanwhile, as Python's can: each plays as it was when it was checked.
  PoolResult Send(std::span<const int> envs, const std::int32_t* actions) TETRION_EXCLUDES(mu_);
  // Blocks for at most `timeout_ns` until envs.size() environments are ready, then takes them.
  PoolStatus Receive(std::span<int> envs, std::int64_t timeout_ns) TETRION_EXCLUDES(mu_);
  // Blocks for at most `timeout_ns` until none is stepping; the caller then holds all of them.
  PoolStatus ReceiveAll(std::int64_t timeout_ns) TETRION_EXCLUDES(mu_);

  // The record of an environment that no thread is stepping into `out` [record_bytes]; also after
  // Close, and in a child process.
  PoolResult Record(int env, std::span<std::byte> out) TETRION_EXCLUDES(mu_);
  // The states of `envs`, which no thread may be stepping, into `saved` [envs] (Lanes::Save).
  PoolResult Save(std::span<const int> envs, std::span<std::vector<std::byte>> saved)
      TETRION_EXCLUDES(mu_);
  // `envs` go on as saved and are held by the caller; nothing changes unless all of them can.
  PoolResult Load(std::span<const int> envs, std::span<const std::span<const std::byte>> saved)
      TETRION_EXCLUDES(mu_);

  // Plays what waits for a thread in the caller's: a caller about to wait for all of it is one
  // thread more, and need not wait for the others to wake.
  void Help() TETRION_EXCLUDES(mu_);

  // Ends every wait with kClosed and joins the threads, which takes one step of some environments.
  // May be called twice. Does nothing in a child process, where the threads never ran.
  void Close() TETRION_EXCLUDES(mu_, join_mu_);
  // For a child process's only thread, right after the fork. A pool that plays in its callers'
  // threads is the child's own from now on, unless one of those was in it: that thread is not in
  // the child, so the pool is the parent's (kForked). Without this call such a pool may block.
  void AfterFork() TETRION_EXCLUDES(mu_, join_mu_);
  // Deletes the pool, except where it is the parent process's: there its locks may be held and its
  // condition variables waited on by threads that do not exist, so its memory is left alone.
  static void Delete(VectorPool* pool);

  Lanes& lanes() { return lanes_; }
  int threads() const { return static_cast<int>(owners_.size()); }

 private:
  enum class State : std::uint8_t { kUnset, kHeld, kStepping, kReady };
  // An owner takes from the first end of its queue and helpers from the last, so that in step after
  // step most environments are played by the same thread, whose core has them in its cache.
  enum class End : std::uint8_t { kFirst, kLast };
  // A first-in, first-out queue of environments that never holds one twice, so that it never grows.
  class Fifo {
   public:
    explicit Fifo(std::size_t capacity) : env_(capacity) {}
    std::size_t size() const { return size_; }
    void Push(std::span<const int> envs) {
      const std::span<int> to = Part(size_, envs.size());
      std::copy_n(envs.begin(), to.size(), to.begin());
      std::copy(envs.begin() + static_cast<std::ptrdiff_t>(to.size()), envs.end(), env_.begin());
      size_ += envs.size();
    }
    // The first or last envs.size() of them, which there must be, in their order.
    void Pop(End end, std::span<int> envs) {
      const std::size_t from = end == End::kFirst ? 0 : size_ - envs.size();
      const std::span<int> part = Part(from, envs.size());
      std::copy(part.begin(), part.end(), envs.begin());
      std::copy_n(env_.begin(), envs.size() - part.size(),
                  envs.begin() + static_cast<std::ptrdiff_t>(part.size()));
      if (end == End::kFirst) first_ = Wrapped(first_ + envs.size());
      size_ -= envs.size();
    }
    void Clear() { size_ = 0; }

   private:
    std::size_t Wrapped(std::size_t at) const { return at < env_.size() ? at : at - env_.size(); }
    // Of the places `from` to `from` + `count` those before the memory's end; the others begin it.
    std::span<int> Part(std::size_t from, std::size_t count) {
      const std::size_t at = Wrapped(first_ + from);
      return std::span(env_).subspan(at, std::min(count, env_.size() - at));
    }

    std::vector<int> env_;
    std::size_t first_ = 0, size_ = 0;
  };
  // Environments of one owner that wait for their step.
  struct Queue {
    explicit Queue(std::size_t capacity) : pending(capacity) {}
    Fifo pending;  // guarded by mu_
    CondVar arrived;
  };
  class Owner;

  void StartOwners() TETRION_EXCLUDES(join_mu_);
  // Whether what the pool needs is in the parent process: its threads, or a caller's.
  bool InChild() const;
  // Changes `envs` to stepping, with `actions` unless those are null (a reset), or moves nothing.
  PoolResult Claim(std::span<const int> envs, const std::int32_t* actions) TETRION_REQUIRES(mu_);
  // Claim of environments that are neighbours, in their order, and can all be claimed; false, and
  // nothing is claimed, for others.
  bool ClaimNeighbours(std::span<const int> envs, const std::int32_t* actions)
      TETRION_REQUIRES(mu_);
  // Whether `envs` exist and none is stepping or waits to be received.
  PoolResult AtRest(std::span<const int> envs) const TETRION_REQUIRES(mu_);
  // One wait, until notified or the deadline; kTimeout past it.
  PoolStatus WaitForReady(std::size_t count, const Deadline& deadline) TETRION_REQUIRES(mu_);
  void Enqueue(std::span<const int> envs) TETRION_REQUIRES(mu_);
  // Plays some of the queue's environments; returns how many. Waits at most `wait_ns` for one.
  int Work(Queue& queue, End end, std::int64_t wait_ns) TETRION_EXCLUDES(mu_);
  // Those of `envs`, which have been played, are ready.
  void Publish(std::span<const int> envs) TETRION_EXCLUDES(mu_);

  // Immutable after construction, but that AfterFork sets caller_lost_.
  const pid_t pid_;
  bool caller_lost_ = false;  // a caller's thread was in the pool at a fork, and this is the child
  Lanes lanes_;               // an environment and its row of columns belong to its holder
  const std::size_t per_queue_;  // owner k has environments [k * per_queue_, (k + 1) * per_queue_)
  std::vector<std::unique_ptr<Queue>> queues_;

  Mutex mu_;
  std::vector<State> state_ TETRION_GUARDED_BY(mu_);
  std::vector<State> before_ TETRION_GUARDED_BY(mu_);  // scratch of Claim
  Fifo ready_ TETRION_GUARDED_BY(mu_);                 // in order of completion
  std::size_t stepping_ TETRION_GUARDED_BY(mu_) = 0;
  std::atomic<std::size_t> receivers_ = 0;          // callers that sleep; written under mu_
  std::size_t wanted_ TETRION_GUARDED_BY(mu_) = 0;  // one of them wakes when so many are ready
  bool closed_ TETRION_GUARDED_BY(mu_) = false;
  CondVar became_ready_;

  Mutex join_mu_;  // taken alone, never while holding mu_
  std::vector<std::unique_ptr<Owner>> owners_;
  std::vector<std::unique_ptr<AgentRunner>> runners_ TETRION_GUARDED_BY(join_mu_);
};

}  // namespace tetrion
