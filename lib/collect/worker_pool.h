#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/collect/lane_loop.h"
#include "lib/core/agent.h"

namespace tetrion {

// Threads with a lane loop each, or with several that take turns row by row: while one waits for an
// answer, the next steps its lanes. Used by actors and by the collector; only the sinks differ.
class WorkerPool {
 public:
  // `on_error` is called on the failing worker's thread.
  explicit WorkerPool(std::function<void(std::exception_ptr)> on_error);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Before Start only. The thread calls `on_drained`, if there is one, when its loop is drained,
  // and counts as drained after it.
  void Add(std::string name, std::unique_ptr<LaneLoop> loop,
           std::function<void()> on_drained = nullptr);
  // One thread for all of them.
  void Add(std::string name, std::vector<std::unique_ptr<LaneLoop>> loops,
           std::function<void()> on_drained = nullptr);
  // Returns at once.
  void Start();
  // True once every worker has cut its lanes and published everything (its tokens were drained), or
  // has failed. After Start.
  bool Drained() const;
  // Ends the threads after the row they are in, drained or not; blocks for at most one wait
  // time-out. May be called twice.
  void Stop();
  // Loops, in the order in which they were added.
  int size() const { return static_cast<int>(loops_.size()); }
  int threads() const { return static_cast<int>(workers_.size()); }
  const AgentRunner& runner(int thread) const;
  const LaneCounters& counters(int loop) const;

 private:
  struct Worker;
  const std::function<void(std::exception_ptr)> on_error_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<const LaneLoop*> loops_;
};

}  // namespace tetrion
