#include "lib/cuda/sim/fiber.h"

#include <sys/mman.h>

#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::cuda::sim {
namespace {

constexpr std::size_t kPageBytes = 4096;
// Kernels keep little on their stacks; sanitizers and -O0 multiply it.
constexpr std::size_t kStackBytes = 256 * 1024;

// Memory for a stack, above a page that faults.
void* NewStack() {
  void* memory = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPageBytes, PROT_NONE) != 0) {
    throw Error(ExitCode::kTryAgain, "no memory for the stack of a simulated CUDA thread");
  }
  return static_cast<char*>(memory) + kPageBytes;
}

// For Boost, which frees the stack of a fiber that has ended; ours never end.
struct KeepStack {
  void deallocate(boost::context::stack_context&) const {}
};

}  // namespace

Fiber::Fiber() {
  void* const bottom = NewStack();
  inside_stack_.Own(bottom, kStackBytes);
  boost::context::stack_context context;
  context.size = kStackBytes;
  context.sp = static_cast<char*>(bottom) + kStackBytes;
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
