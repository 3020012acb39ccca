#pragma once

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "lib/core/clock.h"

namespace tetrion::testing {

// How long a test waits for what should happen at once. Passing takes microseconds; only what never
// comes takes so long, and fails by name.
inline constexpr std::int64_t kPatienceNs = 5 * kNanosPerSecond;

// A thread of which a test can wait until it sleeps in the operating system, and until it is done.
class Sleeper {
 public:
  // Starts `wait` on a thread; it may take longer than kPatienceNs, but must end by itself.
  template <typename Wait>
  explicit Sleeper(Wait wait)
      : thread_([this, wait] {
          id_ = static_cast<int>(syscall(SYS_gettid));
          wait();
          done_ = true;
        }) {}
  ~Sleeper() { thread_.join(); }

  // True once the thread sleeps; false when it is done without or stays awake.
  bool FallsAsleep() const {
    return Comes([this] { return done_ || State() == 'S'; }) && !done_;
  }
  bool IsDone() const {
    return Comes([this] { return done_.load(); });
  }

 private:
  template <typename Condition>
  static bool Comes(Condition condition) {
    const Deadline deadline(MonotonicClock::Get(), kPatienceNs);
    while (!condition()) {
      if (deadline.Passed()) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // 'S' of a thread that sleeps, 'R' of one that runs.
  char State() const {
    std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(") ");
    return name_end == std::string::npos ? '?' : stat[name_end + 2];
  }

  std::atomic<int> id_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace tetrion::testing
