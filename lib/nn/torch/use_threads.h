#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Has the tensor library use so many threads for what the calling thread computes. The count
// belongs to the thread; it is set where it changes only.
inline void UseThreads(int threads) {
  thread_local int current = -1;  // not 0: see tests/tidy/rules.py, thread_local
  if (current != threads) at::set_num_threads(threads);
  current = threads;
}

}  // namespace tetrion
