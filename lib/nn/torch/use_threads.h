#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Has the tensor library use so many threads for what the calling thread computes. The count
// belongs to the thread. When a thread first asks for its count, or first computes much, the
// library overwrites that count with the one that any thread set last. So this function asks first
// and then sets: what it sets stays.
inline void UseThreads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace tetrion
