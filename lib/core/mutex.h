#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

// Clang's thread-safety annotations; nothing under other compilers.
#if defined(__clang__)
#define TETRION_ANNOTATION(x) __attribute__((x))
#else
#define TETRION_ANNOTATION(x)
#endif
#define TETRION_CAPABILITY(x) TETRION_ANNOTATION(capability(x))
#define TETRION_SCOPED_CAPABILITY TETRION_ANNOTATION(scoped_lockable)
#define TETRION_GUARDED_BY(x) TETRION_ANNOTATION(guarded_by(x))
#define TETRION_REQUIRES(...) TETRION_ANNOTATION(requires_capability(__VA_ARGS__))
#define TETRION_ACQUIRE(...) TETRION_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TETRION_RELEASE(...) TETRION_ANNOTATION(release_capability(__VA_ARGS__))
#define TETRION_TRY_ACQUIRE(...) TETRION_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define TETRION_EXCLUDES(...) TETRION_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace tetrion {

// The only mutex type of the project, so that clang checks what each one guards.
class TETRION_CAPABILITY("mutex") Mutex {
 public:
  void Lock() TETRION_ACQUIRE() { mu_.lock(); }
  void Unlock() TETRION_RELEASE() { mu_.unlock(); }
  // False where it is locked already; never blocks.
  bool TryLock() TETRION_TRY_ACQUIRE(true) { return mu_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class TETRION_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) TETRION_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() TETRION_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// A condition variable without an unbounded wait: every wait has a time-out.
class CondVar {
 public:
  // Returns after a notification, a spurious wake-up or `timeout_ns`; the caller re-checks.
  void WaitFor(Mutex& mu, std::int64_t timeout_ns) TETRION_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait_for(lock, std::chrono::nanoseconds(timeout_ns));
    lock.release();
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace tetrion
