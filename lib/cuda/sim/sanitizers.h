#pragma once

#include <cstddef>

// What the sanitizers must be told of: memory that only a running operation may touch, and stacks
// that are switched. Nothing without a sanitizer.

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tetrion::cuda::sim {

inline void ForbidAccess([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, bytes);
#endif
}

inline void AllowAccess([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

// One stack that a fiber or a host thread runs on, as the sanitizers know it. A switch is
// `from.Leave(to)`, then the jump, then, on the other stack, `to.Arrive(from)`.
class SanitizedStack {
 public:
  // Only for a fiber's stack, once.
  void Own([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    bottom_ = bottom;
    bytes_ = bytes;
#endif
#if defined(__SANITIZE_THREAD__)
    thread_ = __tsan_create_fiber(0);
#endif
  }

  // On this stack, in front of the jump to `to`.
  void Leave([[maybe_unused]] SanitizedStack& to, [[maybe_unused]] bool to_fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    if (to_fiber) thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.thread_, 0);
#endif
  }

  // On this stack, behind the jump from `from`. A host thread's stack is learnt here.
  void Arrive([[maybe_unused]] SanitizedStack& from, [[maybe_unused]] bool on_fiber) {
#if defined(__SANITIZE_ADDRESS__)
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &bytes);
    if (on_fiber) {
      from.bottom_ = bottom;
      from.bytes_ = bytes;
    }
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
  void* thread_ = nullptr;
#endif
};

}  // namespace tetrion::cuda::sim
