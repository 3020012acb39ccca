#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/mutex.h"

namespace tetrion {

// A fixed team of threads for one data-parallel loop at a time. The caller is member 0; helpers
// sleep between loops (no spinning: actors share the cores).
//
// Thread role: one owner calls Run; it blocks until every member is done.
class ThreadTeam {
 public:
  // `size` members, the caller's thread included; size - 1 threads are started, called `name`-1,
  // `name`-2, ... (the kernel shows the first 15 bytes).
  explicit ThreadTeam(int size, const std::string& name = "scorer");
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }
  // Calls work(member) once for every member, 0..size-1. `work` must not throw.
  void Run(const std::function<void(int)>& work);

 private:
  void Help(int member);

  Mutex mu_;
  CondVar changed_;
  const std::function<void(int)>* work_ TETRION_GUARDED_BY(mu_) = nullptr;
  std::uint64_t round_ TETRION_GUARDED_BY(mu_) = 0;
  int busy_ TETRION_GUARDED_BY(mu_) = 0;
  bool stop_ TETRION_GUARDED_BY(mu_) = false;
  std::vector<std::thread> helpers_;
};

}  // namespace tetrion
