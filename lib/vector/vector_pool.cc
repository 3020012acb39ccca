#include "lib/vector/vector_pool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/envs/lane_runs.h"

namespace tetrion {
namespace {

constexpr int kMaxEnvs = 1 << 20;
constexpr int kMaxThreads = 256;
// Environments played one rule at a time: few enough that their records stay in the first-level
// cache until they are encoded. Sleeping callers are given results in groups of this size.
constexpr std::size_t kChunk = 64;
// Environments taken at one look at the queue: at most this many, and a quarter of those that wait,
// so that the threads end together. Few looks, since the queue's lines wander between the cores.
constexpr std::size_t kMostTaken = 512;
constexpr std::int64_t kIdleWaitNs = 100 * kNanosPerMilli;

int CheckedCount(int count, int threads) {
  if (count < 1 || count > kMaxEnvs) {
    throw Error(ExitCode::kUsage, "num_envs must be 1 to " + std::to_string(kMaxEnvs) + ", not " +
                                      std::to_string(count));
  }
  if (threads < 0 || threads > kMaxThreads) {
    throw Error(ExitCode::kUsage, "threads must be 0 to " + std::to_string(kMaxThreads) + ", not " +
                                      std::to_string(threads));
  }
  return count;
}

// A value that another thread may be writing: what one look at it says.
std::int32_t ReadOnce(const std::int32_t& value) {
  return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

}  // namespace

// Plays one queue's environments on a thread of its own.
class VectorPool::Owner final : public Agent {
 public:
  Owner(VectorPool& pool, Queue& queue, int number) : pool_(pool), queue_(queue), number_(number) {}
  std::string name() const override { return "vec-env-" + std::to_string(number_); }
  int DoWork() override { return pool_.Work(queue_, End::kFirst, kIdleWaitNs); }

 private:
  VectorPool& pool_;
  Queue& queue_;
  const int number_;
};

VectorPool::VectorPool(const PyEnvConfig& config, int count, int threads)
    : pid_(getpid()),
      lanes_(config, CheckedCount(count, threads)),
      per_queue_(
          static_cast<std::size_t>((count + std::max(threads, 1) - 1) / std::max(threads, 1))),
      state_(static_cast<std::size_t>(count), State::kUnset),
      before_(static_cast<std::size_t>(count)),
      ready_(static_cast<std::size_t>(count)) {
  for (std::size_t begin = 0; begin < static_cast<std::size_t>(count); begin += per_queue_) {
    queues_.push_back(std::make_unique<Queue>(per_queue_));
  }
  if (threads == 0) return;
  try {
    StartOwners();
  } catch (...) {
    Close();  // those that run
    throw;
  }
}

void VectorPool::StartOwners() {
  const MutexLock lock(join_mu_);
  for (const auto& queue : queues_) {
    owners_.push_back(std::make_unique<Owner>(*this, *queue, static_cast<int>(owners_.size())));
    runners_.push_back(std::make_unique<AgentRunner>(*owners_.back(), [](std::exception_ptr) {
      TETRION_CHECK(false, "playing an environment does not throw");
    }));
    runners_.back()->Start();
  }
}

VectorPool::~VectorPool() {
  Close();
}

void VectorPool::Delete(VectorPool* pool) {
  if (!pool->InChild()) delete pool;
}

bool VectorPool::InChild() const {
  return caller_lost_ || (!owners_.empty() && getpid() != pid_);
}

void VectorPool::AfterFork() {
  // Nobody else is in the child: what is locked now, or stepping, stays so.
  if (!mu_.TryLock()) {
    caller_lost_ = true;
    return;
  }
  caller_lost_ = caller_lost_ || stepping_ > 0 || receivers_ > 0;
  mu_.Unlock();
  if (!join_mu_.TryLock()) {
    caller_lost_ = true;
    return;
  }
  join_mu_.Unlock();
}

bool VectorPool::ClaimNeighbours(std::span<const int> envs, const std::int32_t* actions) {
  if (envs.empty()) return false;
  const int first = envs.front();
  const auto at = static_cast<std::size_t>(first);  // beyond all environments if it is negative
  if (at >= state_.size() || envs.size() > state_.size() - at) return false;
  const std::span<State> states = std::span(state_).subspan(at, envs.size());
  unsigned off = 0;  // without a way out of the loop, which becomes vectors
  for (const State state : states)
    off |= static_cast<unsigned>(state) ^ static_cast<unsigned>(State::kHeld);
  if (off != 0 || !AreNeighbours(envs, first)) return false;
  const auto action_count = static_cast<std::uint32_t>(lanes_.spec().action.count);
  std::uint32_t greatest = 0;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const std::int32_t action = ReadOnce(actions[i]);
    greatest = std::max(greatest, static_cast<std::uint32_t>(action));
    lanes_.SetAction(first + static_cast<int>(i), action);
  }
  if (greatest >= action_count) return false;
  std::fill(states.begin(), states.end(), State::kStepping);
  return true;
}

PoolResult VectorPool::Claim(std::span<const int> envs, const std::int32_t* actions) {
  if (actions != nullptr && ClaimNeighbours(envs, actions)) {
    stepping_ += envs.size();
    return {};
  }
  const auto action_count = static_cast<std::uint32_t>(lanes_.spec().action.count);
  PoolResult result;
  for (; result.item < envs.size(); ++result.item) {
    const auto env = static_cast<std::size_t>(envs[result.item]);
    if (env >= state_.size()) {  // negative ones too
      result.status = PoolStatus::kNoSuchEnv;
      break;
    }
    State& state = state_[env];
    if (state == State::kStepping || state == State::kReady) {
      const std::span<const int> earlier = envs.first(result.item);
      const bool twice =
          std::find(earlier.begin(), earlier.end(), envs[result.item]) != earlier.end();
      result.status = twice ? PoolStatus::kTwice : PoolStatus::kBusy;
      break;
    }
    if (actions != nullptr) {
      if (state == State::kUnset) {
        result.status = PoolStatus::kNotReset;
        break;
      }
      const std::int32_t action = ReadOnce(actions[result.item]);
      if (static_cast<std::uint32_t>(action) >= action_count) {
        result.status = PoolStatus::kBadAction;
        result.action = action;
        break;
      }
      lanes_.SetAction(envs[result.item], action);
    }
    before_[result.item] = state;
    state = State::kStepping;
  }
  if (result.status == PoolStatus::kOk) {
    stepping_ += envs.size();
    return result;
  }
  for (std::size_t i = 0; i < result.item; ++i) {
    state_[static_cast<std::size_t>(envs[i])] = before_[i];
  }
  return result;
}

void VectorPool::Enqueue(std::span<const int> envs) {
  // Neighbours are mostly one owner's, all of them where there is one.
  for (std::size_t at = 0; at < envs.size();) {
    const std::size_t owner = static_cast<std::size_t>(envs[at]) / per_queue_;
    std::size_t end = queues_.size() == 1 ? envs.size() : at + 1;
    while (end < envs.size() &&
           static_cast<std::size_t>(envs[end]) - owner * per_queue_ < per_queue_) {
      ++end;
    }
    Queue& queue = *queues_[owner];
    queue.pending.Push(envs.subspan(at, end - at));
    queue.arrived.NotifyOne();
    at = end;
  }
}

PoolResult VectorPool::Reset(std::span<const int> envs, const std::uint64_t* seeds) {
  if (InChild()) return {PoolStatus::kForked};
  {
    const MutexLock lock(mu_);
    if (closed_) return {PoolStatus::kClosed};
    const PoolResult claimed = Claim(envs, nullptr);
    if (claimed.status != PoolStatus::kOk) return claimed;
  }
  // Ours alone until they are queued.
  for (std::size_t i = 0; i < envs.size(); ++i) {
    if (seeds != nullptr) lanes_.Seed(envs[i], seeds[i]);
    lanes_.Restart(envs[i]);
  }
  {
    const MutexLock lock(mu_);
    Enqueue(envs);
  }
  if (owners_.empty()) Help();
  return {};
}

PoolResult VectorPool::Send(std::span<const int> envs, const std::int32_t* actions) {
  if (InChild()) return {PoolStatus::kForked};
  {
    const MutexLock lock(mu_);
    if (closed_) return {PoolStatus::kClosed};
    const PoolResult claimed = Claim(envs, actions);
    if (claimed.status != PoolStatus::kOk) return claimed;
    Enqueue(envs);
  }
  if (owners_.empty()) Help();
  return {};
}

int VectorPool::Work(Queue& queue, End end, std::int64_t wait_ns) {
  std::array<int, kMostTaken> taken;
  std::span<int> envs;
  {
    const MutexLock lock(mu_);
    Fifo& pending = queue.pending;
    if (pending.size() == 0 && wait_ns > 0 && !closed_) queue.arrived.WaitFor(mu_, wait_ns);
    if (pending.size() == 0 || closed_) return 0;
    const std::size_t share = std::clamp(pending.size() / 4, kChunk, kMostTaken);
    envs = std::span(taken).first(std::min(pending.size(), share));
    pending.Pop(end, envs);
  }
  std::size_t published = 0, played = 0;
  while (played < envs.size()) {
    const std::size_t chunk = std::min(kChunk, envs.size() - played);
    lanes_.Play(envs.subspan(played, chunk));
    played += chunk;
    if (played == envs.size() || receivers_.load(std::memory_order_relaxed) > 0) {
      Publish(envs.subspan(published, played - published));
      published = played;
    }
  }
  return static_cast<int>(envs.size());
}

void VectorPool::Publish(std::span<const int> envs) {
  const MutexLock lock(mu_);
  State* const states = state_.data();
  ForEachRun(envs, envs.size(),
             [states](int first, std::size_t n) { std::fill_n(states + first, n, State::kReady); });
  ready_.Push(envs);
  stepping_ -= envs.size();
  if (receivers_ > 0 && (ready_.size() >= wanted_ || stepping_ == 0)) became_ready_.NotifyAll();
}

void VectorPool::Help() {
  if (InChild()) return;
  // Without owners results are ready in the order in which they were sent.
  const End end = owners_.empty() ? End::kFirst : End::kLast;
  for (const auto& queue : queues_) {
    while (Work(*queue, end, 0) > 0) continue;
  }
}

PoolStatus VectorPool::WaitForReady(std::size_t count, const Deadline& deadline) {
  receivers_ += 1;
  // The least that any receiver waits for: with several of them some wake too early.
  wanted_ = receivers_ == 1 ? count : std::min(wanted_, count);
  became_ready_.WaitFor(mu_, deadline.LeftNs());
  receivers_ -= 1;
  return deadline.Passed() ? PoolStatus::kTimeout : PoolStatus::kOk;
}

PoolStatus VectorPool::Receive(std::span<int> envs, std::int64_t timeout_ns) {
  if (InChild()) return PoolStatus::kForked;
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  const MutexLock lock(mu_);
  PoolStatus waited = PoolStatus::kOk;
  while (!closed_ && ready_.size() < envs.size()) {
    if (ready_.size() + stepping_ < envs.size()) return PoolStatus::kTooFew;
    if (waited == PoolStatus::kTimeout) return waited;
    waited = WaitForReady(envs.size(), deadline);
  }
  if (closed_) return PoolStatus::kClosed;
  ready_.Pop(End::kFirst, envs);
  for (const int env : envs) state_[static_cast<std::size_t>(env)] = State::kHeld;
  return PoolStatus::kOk;
}

PoolStatus VectorPool::ReceiveAll(std::int64_t timeout_ns) {
  if (InChild()) return PoolStatus::kForked;
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  const MutexLock lock(mu_);
  PoolStatus waited = PoolStatus::kOk;
  while (!closed_ && stepping_ > 0) {
    if (waited == PoolStatus::kTimeout) return waited;
    waited = WaitForReady(ready_.size() + stepping_, deadline);
  }
  if (closed_) return PoolStatus::kClosed;
  ready_.Clear();
  for (State& state : state_) state = state == State::kReady ? State::kHeld : state;
  return PoolStatus::kOk;
}

PoolResult VectorPool::AtRest(std::span<const int> envs) const {
  for (std::size_t i = 0; i < envs.size(); ++i) {
    if (envs[i] < 0 || envs[i] >= lanes_.count()) return {PoolStatus::kNoSuchEnv, i};
    const State state = state_[static_cast<std::size_t>(envs[i])];
    if (state == State::kStepping || state == State::kReady) return {PoolStatus::kBusy, i};
  }
  return {};
}

PoolResult VectorPool::Record(int env, std::span<std::byte> out) {
  // In a child nobody steps, and the lock may be held by a thread that does not exist.
  if (!InChild()) {
    const MutexLock lock(mu_);
    const PoolResult rest = AtRest({&env, 1});
    if (rest.status != PoolStatus::kOk) return rest;
    if (state_[static_cast<std::size_t>(env)] == State::kUnset) return {PoolStatus::kNotReset};
  }
  std::memcpy(out.data(), lanes_.record(env), out.size());
  return {};
}

PoolResult VectorPool::Save(std::span<const int> envs, std::span<std::vector<std::byte>> saved) {
  if (InChild()) return {PoolStatus::kForked};
  const MutexLock lock(mu_);
  if (closed_) return {PoolStatus::kClosed};
  const PoolResult rest = AtRest(envs);
  if (rest.status != PoolStatus::kOk) return rest;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    saved[i] = lanes_.Save(envs[i]);
    if (saved[i].empty()) return {PoolStatus::kNotReset, i};
  }
  return {};
}

PoolResult VectorPool::Load(std::span<const int> envs,
                            std::span<const std::span<const std::byte>> saved) {
  if (InChild()) return {PoolStatus::kForked};
  std::vector<Lanes::Saved> opened;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    std::optional<Lanes::Saved> one = lanes_.Opened(saved[i]);
    if (!one.has_value()) return {PoolStatus::kBadState, i};
    opened.push_back(*one);
  }
  const MutexLock lock(mu_);
  if (closed_) return {PoolStatus::kClosed};
  const PoolResult rest = AtRest(envs);
  if (rest.status != PoolStatus::kOk) return rest;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    lanes_.Put(envs[i], opened[i]);
    state_[static_cast<std::size_t>(envs[i])] = State::kHeld;
  }
  return {};
}

void VectorPool::Close() {
  if (InChild()) return;
  {
    const MutexLock lock(mu_);
    closed_ = true;
    became_ready_.NotifyAll();
    for (const auto& queue : queues_) queue->arrived.NotifyAll();
  }
  const MutexLock lock(join_mu_);
  for (const auto& runner : runners_) runner->RequestStop();
  for (const auto& runner : runners_) runner->Join();
}

}  // namespace tetrion
