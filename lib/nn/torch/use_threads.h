#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Has the tensor library use so many threads for what the calling thread computes. The count
// belongs to the thread. The library gives a thread its first one, the last that any thread has
// set, when the thread first asks for it or computes much: asking comes before setting here, so
// that what is set stays.
inline void UseThreads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace tetrion
