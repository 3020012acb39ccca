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
// Thread role: one owner calls Share.
class ThreadTeam {
 public:
  // `size` members, the caller's thread included; size - 1 threads are started, called `name`-1,
  // `name`-2, ... (the kernel shows the first 15 bytes). Throws what std::thread throws when one
  // cannot be started, and leaves none behind.
  explicit ThreadTeam(int size, const std::string& name = "scorer");
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }
  // Calls work(member, item) once for every item, 0..items-1; a member takes the next one when it
  // is done with its last, so which member takes which differs from call to call. Blocks until all
  // are done, but not for helpers that have not begun: a helper that other threads keep from its
  // core holds up nothing. `work` must not throw.
  void Share(int items, const std::function<void(int, int)>& work);

 private:
  struct Loop;
  void Help(int member);
  void Stop();  // Blocks until all helpers have ended.

  Mutex mu_;
  CondVar changed_;
  Loop* loop_ TETRION_GUARDED_BY(mu_) = nullptr;  // that helpers may join
  std::uint64_t round_ TETRION_GUARDED_BY(mu_) = 0;
  int busy_ TETRION_GUARDED_BY(mu_) = 0;  // helpers in it
  bool stop_ TETRION_GUARDED_BY(mu_) = false;
  std::vector<std::thread> helpers_;
};

}  // namespace tetrion
