#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace tetrion {

// A duty cycle that one thread runs: link, worker, ingest, trainer, store. An agent owns its state;
// other threads reach it through queues and atomics only.
class Agent {
 public:
  virtual ~Agent() = default;
  // Names the thread (the kernel shows its first 15 bytes), logs and metrics.
  virtual std::string name() const = 0;
  // One cycle. May block up to the agent's own deadline (at most 100 ms, so that a stop is seen).
  // Returns how much work was done; 0 lets the runner idle. Throws Error to fail the process.
  virtual int DoWork() = 0;
  // Last call on the agent's thread, also after an exception. What it throws fails the process,
  // too.
  virtual void OnClose() {}
};

// Runs one agent on one named thread.
class AgentRunner {
 public:
  // `on_error` is called at most once, on the agent's thread, with the first exception of DoWork
  // or OnClose; it must not throw. The agent must outlive the runner. `idle_ns`: sleep after
  // a cycle without work; 0 for agents that block by themselves.
  AgentRunner(Agent& agent, std::function<void(std::exception_ptr)> on_error,
              std::int64_t idle_ns = 0);
  ~AgentRunner();
  AgentRunner(const AgentRunner&) = delete;
  AgentRunner& operator=(const AgentRunner&) = delete;

  void Start();
  // Asks the thread to end after its cycle; returns at once; may be called twice, from any thread.
  void RequestStop() { stop_.store(true, std::memory_order_release); }
  // Blocks until the thread has ended (one cycle plus OnClose). May be called twice.
  void Join();
  std::string agent_name() const { return agent_.name(); }
  bool Running() const { return running_.load(std::memory_order_acquire); }
  // Longest cycle so far, the present one included: grows while the agent hangs. Any thread.
  std::int64_t MaxCycleNs() const;
  // Time since the agent last finished a cycle (before the first: since Start); 0 when it does not
  // run. Grows while the agent hangs, so that readiness can fail at a bound. Any thread.
  std::int64_t CycleAgeNs() const;

 private:
  void Run();
  void RunCycles();

  Agent& agent_;
  const std::function<void(std::exception_ptr)> on_error_;
  const std::int64_t idle_ns_;
  std::atomic<bool> stop_{false};              // set by RequestStop; pairs with the load in Run
  std::atomic<bool> running_{false};           // set by Run; pairs with Running
  std::atomic<std::int64_t> max_cycle_ns_{0};  // of finished ones
  std::atomic<std::int64_t> cycle_end_ns_{0};  // set by Start and Run; pairs with CycleAgeNs
  std::thread thread_;
};

}  // namespace tetrion
