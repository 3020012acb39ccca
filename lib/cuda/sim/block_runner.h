#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cuda/backend.h"
#include "lib/cuda/sim/fiber.h"
#include "lib/cuda/sim/finding.h"
#include "lib/cuda/sim/kernel_calls.h"
#include "lib/cuda/sim/scheduler.h"
#include "lib/cuda/sim/shared_memory.h"

namespace tetrion::cuda::sim {

// Runs one block of a kernel at a time on the calling host thread: its threads one after the other
// as plain calls on one fiber. A thread that has to wait keeps its fiber, and the rest goes on with
// another one. Threads switch at barriers, at warp operations and where they end, nowhere else.
//
// Not thread-safe; the simulator's mutex guards it. There is one per process.
class BlockRunner {
 public:
  static constexpr std::size_t kMostThreads = 1024;

  // Runs the block; what was wrong with it, if anything was. The scheduler orders the threads.
  std::optional<Finding> Run(const KernelCall& call, const Dim3& block, Scheduler& scheduler);

  // The runner whose kernel the calling thread is in, or null: what kernel_calls.h finds its block
  // by. Any thread.
  static BlockRunner* Current();

  // What a lane asks of its warp.
  struct WarpCall {
    WarpOperation what = WarpOperation::kSync;
    std::uint32_t mask = 0;
    std::uint64_t value = 0;
    unsigned source = 0;        // of kShuffle
    Combine combine = nullptr;  // of kReduce
  };
  // How many threads of the block voted.
  std::size_t WaitAtBarrier(bool vote, CodeLocation where);
  std::uint64_t WaitInWarp(const WarpCall& call, CodeLocation where);
  unsigned lane() const { return static_cast<unsigned>(current_ % kWarpThreads); }
  SharedMemory& shared() { return shared_; }
  // The running thread, for messages: launch, block, thread.
  std::string Place() const;
  // Whether the running thread's stack ends at the address.
  bool StackEndsAt(const void* address) const;

 private:
  static constexpr std::size_t kWarpThreads = 32;
  enum class State : std::uint8_t { kReady, kAtBarrier, kInWarp, kEnded };

  struct Thread {
    State state = State::kReady;
    Fiber* fiber = nullptr;  // null before its first step and after its last
    CodeLocation where;      // of the wait
    WarpCall warp;
    bool vote = false;  // at the barrier
    std::uint64_t result = 0;
  };
  struct Stopped {};  // thrown through the waiting threads of a block that was given up

  void SetState(std::size_t thread, State state);
  std::optional<std::size_t> Pick();
  void RunUntilDone();
  void Enter(std::size_t thread);
  void RunThreads(Fiber& fiber);
  void RunThread();
  void Suspend();
  void StopWaiting();
  void EndThread(std::size_t thread);
  void PassBarrier();
  void CheckMask(std::uint32_t mask, CodeLocation where) const;
  void TryWarp(std::size_t warp, std::uint32_t mask);
  void PassWarp(std::size_t warp, std::uint32_t mask);
  std::uint64_t WarpResult(const Thread* lanes, std::size_t lane) const;
  KernelFault Stuck() const;
  void Note(const KernelFault& fault);
  Dim3 ThreadIndex(std::size_t thread) const;

  FiberPool fibers_;
  SharedMemory shared_;

  // Of the block that runs.
  const KernelCall* call_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  Dim3 block_;
  std::vector<Thread> threads_;
  std::array<std::uint64_t, kMostThreads / 64> ready_ = {};  // a bit a thread
  std::size_t current_ = 0;
  std::size_t live_ = 0, ended_ = 0, at_barrier_ = 0;
  bool stopping_ = false;
  std::optional<Finding> finding_;
};

}  // namespace tetrion::cuda::sim
