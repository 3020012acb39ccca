#pragma once

#include <algorithm>

#include "lib/nn/thread_team.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Has the tensor library use so many threads for what the calling thread computes. The count
// belongs to the thread. When a thread first asks for its count, or first computes much, the
// library overwrites that count with the one that any thread set last. So this function asks first
// and then sets: what it sets stays. Throws what std::thread throws when so many threads cannot be
// started now, which is tried once a thread: later the library would end the process, with no more
// than a line of its own.
inline void UseThreads(int threads) {
  if (at::get_num_threads() == threads) return;
  thread_local int tried = 1;
  if (threads > tried) const ThreadTeam trial(threads, "trial");
  tried = std::max(tried, threads);
  at::set_num_threads(threads);
}

}  // namespace tetrion
