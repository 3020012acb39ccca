#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "lib/core/agent.h"

namespace tetrion::learner {

// Does one long piece of work, once, on a thread of its own: allocating the replay and reading a
// checkpoint, or writing the last one, may outlast the learner's lease, which the link thread must
// keep renewing meanwhile.
//
// Its one cycle lasts as long as the work and does not see a stop: the owner that joins it waits.
// One that is stopped before its first cycle has done nothing.
//
// Thread roles: DoWork belongs to its runner's thread, Finished to any other.
class OnceAgent final : public Agent {
 public:
  // `work` may throw.
  OnceAgent(std::string name, std::function<void()> work)
      : name_(std::move(name)), work_(std::move(work)) {}

  std::string name() const override { return name_; }
  int DoWork() override {
    if (finished_.load(std::memory_order_relaxed)) return 0;
    try {
      work_();
    } catch (...) {
      error_ = std::current_exception();
    }
    finished_.store(true, std::memory_order_release);
    return 0;
  }
  // Whether the work is over; what it made may then be used. Throws what it threw. Never blocks.
  bool Finished() const {
    if (!finished_.load(std::memory_order_acquire)) return false;  // pairs with DoWork
    if (error_) std::rethrow_exception(error_);
    return true;
  }

 private:
  const std::string name_;
  const std::function<void()> work_;
  std::exception_ptr error_;
  std::atomic<bool> finished_{false};
};

}  // namespace tetrion::learner
