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
  Worker(std::string worker_name, std::vector<std::unique_ptr<LaneLoop>> lane_loops,
         std::function<void()> last_call, const std::function<void(std::exception_ptr)>& on_error)
      : thread_name(std::move(worker_name)),
        loops(std::move(lane_loops)),
        on_drained(std::move(last_call)),
        running(loops.size()),
        stalled(loops.size(), false),
        runner(*this, on_error, kDrainedIdleNs) {
    for (std::size_t i = 0; i < loops.size(); ++i) running[i] = loops[i].get();
  }

  std::string name() const override { return thread_name; }
  int DoWork() override {
    if (running.empty()) return 0;
    turn = (turn + 1) % running.size();
    // A loop that has waited in vain is only looked at from then on, so that it does not hold up
    // the others; when all have, each may wait again.
    const bool others_go_on = std::count(stalled.begin(), stalled.end(), false) > 0;
    const bool look_only = stalled[turn] && others_go_on;
    const RunResult result = look_only ? running[turn]->RunOnce(0) : running[turn]->RunOnce();
    stalled[turn] = result == RunResult::kWaiting;
    if (result == RunResult::kDrained) {
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(turn));
      stalled.erase(stalled.begin() + static_cast<std::ptrdiff_t>(turn));
      if (running.empty()) {
        if (on_drained != nullptr) on_drained();
        drained.store(true, std::memory_order_release);
      }
    }
    return 1;
  }

  const std::string thread_name;
  const std::vector<std::unique_ptr<LaneLoop>> loops;
  const std::function<void()> on_drained;  // or null
  std::vector<LaneLoop*> running;          // not drained yet
  std::vector<bool> stalled;               // [running] its last call waited in vain
  std::size_t turn = 0;
  std::atomic<bool> drained{false};  // set by the worker; pairs with the acquire in Drained
  AgentRunner runner;
};

WorkerPool::WorkerPool(std::function<void(std::exception_ptr)> on_error)
    : on_error_(std::move(on_error)) {}

WorkerPool::~WorkerPool() {
  Stop();
}

void WorkerPool::Add(std::string name, std::unique_ptr<LaneLoop> loop,
                     std::function<void()> on_drained) {
  std::vector<std::unique_ptr<LaneLoop>> loops;
  loops.push_back(std::move(loop));
  Add(std::move(name), std::move(loops), std::move(on_drained));
}

void WorkerPool::Add(std::string name, std::vector<std::unique_ptr<LaneLoop>> loops,
                     std::function<void()> on_drained) {
  for (const auto& loop : loops) loops_.push_back(loop.get());
  workers_.push_back(std::make_unique<Worker>(std::move(name), std::move(loops),
                                              std::move(on_drained), on_error_));
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

const AgentRunner& WorkerPool::runner(int thread) const {
  return workers_[static_cast<std::size_t>(thread)]->runner;
}

const LaneCounters& WorkerPool::counters(int loop) const {
  return loops_[static_cast<std::size_t>(loop)]->counters();
}

}  // namespace tetrion
