#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <pthread.h>
#include <unistd.h>

#include <cxxabi.h>
#include <atomic>
#include <cstddef>
#include <utility>

// What the parts of the extension module tetrion._core share: their entry points, Python's lock,
// new arrays.

namespace tetrion {

// One function for each part of the extension module; module.cc calls all of them.
void BindCollector(nanobind::module_& m);  // lib/episodes/batch_collector.h
void BindEnvs(nanobind::module_& m);       // lib/vector/vector_pool.h
void BindRegistry(nanobind::module_& m);   // lib/envs/registry.h: what Python asks of environments

// A thread that asks for Python's lock after the interpreter has gone is ended by CPython (before
// 3.14) with pthread_exit, whose unwinding would meet a noexcept or a handler of ours and abort
// the process. Such a thread sleeps here instead until the process has ended, as it does from
// CPython 3.14 on. Call everything that may wait for the lock through this.
template <typename Fn>
auto UnlessPythonIsGone(const Fn& call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// The thread that runs the interpreter's exit hooks, once they have begun. Written under the lock.
inline std::atomic<pthread_t> exit_thread{};

// For a thread that holds the lock and has just learnt that what it uses was closed: when the
// interpreter is leaving it sleeps until the process has ended, instead of telling a user who has
// already left. Other threads than the main one are daemons by then.
inline void SleepIfPythonLeaves() {
  const pthread_t leaving = exit_thread.load(std::memory_order_relaxed);
  if (leaving == pthread_t{} || pthread_equal(leaving, pthread_self()) != 0) return;
  PyEval_SaveThread();
  for (;;) pause();
}

// A Python thread state that outlives GilScopes. Not all zero: see tests/tidy/rules.py,
// thread_local.
struct KeptThreadState {
  PyThreadState* state = nullptr;
  bool initialised = true;
};
inline thread_local KeptThreadState kept_thread_state = {};

// Gives a thread that Python has not made a thread state until DropThreadState, so that it is the
// same thread to Python whenever it comes: threading.local and contextvars stay.
inline void KeepThreadState() {
  if (PyGILState_GetThisThreadState() != nullptr) return;
  static_cast<void>(PyGILState_Ensure());
  kept_thread_state.state = PyEval_SaveThread();
}

// For the end of such a thread, which waits for the lock here; what Python kept for it is freed.
// While the interpreter leaves, which frees it all, returns at once.
inline void DropThreadState() {
  PyThreadState* const state = std::exchange(kept_thread_state.state, nullptr);
  if (state == nullptr || exit_thread.load(std::memory_order_relaxed) != pthread_t{}) return;
  UnlessPythonIsGone([state] {
    PyEval_RestoreThread(state);
    PyGILState_Release(PyGILState_UNLOCKED);  // of KeepThreadState
  });
}

// Holds Python's lock in a scope, on any thread. One that Python has not made calls DropThreadState
// before it ends.
class GilScope {
 public:
  GilScope()
      : state_(UnlessPythonIsGone([] {
          KeepThreadState();
          return PyGILState_Ensure();
        })) {}
  ~GilScope() { PyGILState_Release(state_); }
  GilScope(const GilScope&) = delete;
  GilScope& operator=(const GilScope&) = delete;

 private:
  const PyGILState_STATE state_;
};

// Gives Python's lock away in a scope of a thread that holds it.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    UnlessPythonIsGone([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* const state_;
};

// A new numpy array [n, width], all zero, that owns its memory.
template <typename T>
nanobind::ndarray<nanobind::numpy, T> NewArray(std::size_t n, std::size_t width) {
  auto* data = new T[n * width]();
  const nanobind::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<nanobind::numpy, T>(data, {n, width}, owner);
}

}  // namespace tetrion
