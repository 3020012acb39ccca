#pragma once

#include <atomic>

namespace tetrion {

// Adds to a figure that one thread writes and any may read: no locked instruction, no order.
template <typename T>
void AddRelaxed(std::atomic<T>& counter, T delta) {
  counter.store(counter.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

}  // namespace tetrion
