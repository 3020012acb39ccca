#include "lib/cuda/sim/fiber.h"

#include <sys/mman.h>

#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::cuda::sim {
namespace {

// What faults below a stack: addresses only, and more than one large frame.
constexpr std::size_t kGuardBytes = 1 << 16;
// Kernels keep little on their stacks; sanitizers and -O0 multiply it.
constexpr std::size_t kStackBytes = 256 * 1024;

// Memory for a stack, above pages that fault.
std::byte* NewStack() {
  void* memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  std::byte* const bottom = static_cast<std::byte*>(memory) + kGuardBytes;
  if (memory == MAP_FAILED || mprotect(bottom, kStackBytes, PROT_READ | PROT_WRITE) != 0) {
    if (memory != MAP_FAILED) (void)munmap(memory, kGuardBytes + kStackBytes);
    throw Error(ExitCode::kTryAgain, "no memory for the stack of a simulated CUDA thread");
  }
  return bottom;
}

// For Boost, which frees the stack of a fiber that has ended; ours never end.
struct KeepStack {
  void deallocate(boost::context::stack_context&) const {}
};

}  // namespace

Fiber::Fiber() : bottom_(NewStack()) {
  inside_stack_.Own(bottom_, kStackBytes);
  boost::context::stack_context context;
  context.size = kStackBytes;
  context.sp = bottom_ + kStackBytes;
  inside_ = boost::context::fiber(std::allocator_arg,
                                  boost::context::preallocated(context.sp, context.size, context),
                                  KeepStack(), [this](boost::context::fiber&& outside) {
                                    inside_stack_.Arrive(outside_stack_, true);
                                    outside_ = std::move(outside);
                                    for (;;) {
                                      work_();
                                      idle_ = true;
                                      Suspend();
                                    }
                                    return boost::context::fiber();
                                  });
}

bool Fiber::EndsAt(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte < bottom_ && byte >= bottom_ - kGuardBytes;
}

void Fiber::Begin(std::function<void()> work) {
  TETRION_CHECK(idle_, "a fiber begins while it works");
  work_ = std::move(work);
  idle_ = false;
  Resume();
}

void Fiber::Resume() {
  outside_stack_.Leave(inside_stack_, true);
  inside_ = std::move(inside_).resume();
  outside_stack_.Arrive(inside_stack_, false);
}

void Fiber::Suspend() {
  inside_stack_.Leave(outside_stack_, false);
  outside_ = std::move(outside_).resume();
  inside_stack_.Arrive(outside_stack_, true);
}

Fiber& FiberPool::Take() {
  if (idle_.empty()) return *new Fiber;  // lives as long as the process
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

}  // namespace tetrion::cuda::sim
