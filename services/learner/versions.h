#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tetrion::learner {

// Policy versions this learner may use: [next, limit), reserved by the coordinator in committed
// blocks so that a version never goes down, also not over a crash. The link raises, the trainer
// takes.
class Versions {
 public:
  // Link: at registration and with every heartbeat; never lowers anything. 0 is no version.
  void Allow(std::uint32_t first, std::uint32_t limit) {
    Raise(first_, std::max(first, 1U));
    Raise(limit_, limit);
  }
  // Trainer: the version after `last`, or 0 while the block is used up.
  std::uint32_t After(std::uint32_t last) const {
    const std::uint32_t first = first_.load(std::memory_order_relaxed);
    const std::uint64_t next = std::max<std::uint64_t>(std::uint64_t{last} + 1, first);
    return next < limit() ? static_cast<std::uint32_t>(next) : 0;
  }
  std::uint32_t limit() const { return limit_.load(std::memory_order_relaxed); }

 private:
  static void Raise(std::atomic<std::uint32_t>& value, std::uint32_t to) {
    if (to > value.load(std::memory_order_relaxed)) value.store(to, std::memory_order_relaxed);
  }

  // One writer; a late read only waits a heartbeat longer.
  std::atomic<std::uint32_t> first_{1};
  std::atomic<std::uint32_t> limit_{0};
};

}  // namespace tetrion::learner
