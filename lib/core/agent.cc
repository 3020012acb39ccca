#include "lib/core/agent.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"

namespace tetrion {

AgentRunner::AgentRunner(Agent& agent, std::function<void(std::exception_ptr)> on_error,
                         std::int64_t idle_ns)
    : agent_(agent), on_error_(std::move(on_error)), idle_ns_(idle_ns) {}

AgentRunner::~AgentRunner() {
  RequestStop();
  Join();
}

void AgentRunner::Start() {
  TETRION_CHECK(!thread_.joinable(), "an agent runner starts once");
  cycle_end_ns_.store(MonotonicClock::Get().NowNs(), std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { Run(); });
}

void AgentRunner::Join() {
  if (thread_.joinable()) thread_.join();
}

std::int64_t AgentRunner::MaxCycleNs() const {
  return std::max(max_cycle_ns_.load(std::memory_order_relaxed), CycleAgeNs());
}

std::int64_t AgentRunner::CycleAgeNs() const {
  if (!Running()) return 0;
  const std::int64_t end_ns = cycle_end_ns_.load(std::memory_order_relaxed);
  return std::max<std::int64_t>(MonotonicClock::Get().NowNs() - end_ns, 0);
}

void AgentRunner::Run() {
  bool failed = false;
  try {
    pthread_setname_np(pthread_self(), agent_.name().substr(0, 15).c_str());
    RunCycles();
  } catch (...) {
    failed = true;
    on_error_(std::current_exception());
  }
  try {
    agent_.OnClose();
  } catch (...) {
    // Of two failures the first is told: the second one mostly follows from it.
    if (!failed) on_error_(std::current_exception());
  }
  running_.store(false, std::memory_order_release);
}

void AgentRunner::RunCycles() {
  const Clock& clock = MonotonicClock::Get();
  std::int64_t cycle_start_ns = clock.NowNs();
  while (!stop_.load(std::memory_order_acquire)) {
    const int work = agent_.DoWork();
    const std::int64_t now_ns = clock.NowNs();
    cycle_end_ns_.store(now_ns, std::memory_order_relaxed);
    if (now_ns - cycle_start_ns > max_cycle_ns_.load(std::memory_order_relaxed)) {
      max_cycle_ns_.store(now_ns - cycle_start_ns, std::memory_order_relaxed);
    }
    if (work == 0 && idle_ns_ > 0) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(idle_ns_));
    }
    cycle_start_ns = clock.NowNs();
  }
}

}  // namespace tetrion
