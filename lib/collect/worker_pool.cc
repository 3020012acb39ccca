#include "lib/collect/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

// After its drain a worker only waits to be joined.
constexpr std::int64_t kDrainedIdleNs = 5 * kNanosPerMilli;

}  // namespace

struct WorkerPool::Worker final : Agent {
  Worker(std::string worker_name, std::unique_ptr<LaneLoop> lane_loop,
         const std::function<void(std::exception_ptr)>& on_error)
      : thread_name(std::move(worker_name)),
        loop(std::move(lane_loop)),
        runner(*this, on_error, kDrainedIdleNs) {}

  std::string name() const override { return thread_name; }
  int DoWork() override {
    if (drained.load(std::memory_order_relaxed)) return 0;
    if (loop->RunOnce() == RunResult::kDrained) drained.store(true, std::memory_order_release);
    return 1;
  }

  const std::string thread_name;
  const std::unique_ptr<LaneLoop> loop;
  std::atomic<bool> drained{false};  // set by the worker; pairs with the acquire in Drained
  AgentRunner runner;
};

WorkerPool::WorkerPool(std::function<void(std::exception_ptr)> on_error)
    : on_error_(std::move(on_error)) {}

WorkerPool::~WorkerPool() {
  Stop();
}

void WorkerPool::Add(std::string name, std::unique_ptr<LaneLoop> loop) {
  workers_.push_back(std::make_unique<Worker>(std::move(name), std::move(loop), on_error_));
}

void WorkerPool::Start() {
  for (const auto& worker : workers_) worker->runner.Start();
}

bool WorkerPool::Drained() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->drained.load(std::memory_order_acquire) || !worker->runner.Running();
  });
}

void WorkerPool::Stop() {
  for (const auto& worker : workers_) worker->runner.RequestStop();
  for (const auto& worker : workers_) worker->runner.Join();
}

const LaneCounters& WorkerPool::counters(int worker) const {
  return workers_[static_cast<std::size_t>(worker)]->loop->counters();
}

}  // namespace tetrion
