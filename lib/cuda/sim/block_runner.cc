#include "lib/cuda/sim/block_runner.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <thread>

#include "lib/core/check.h"
#include "lib/cuda/cpu_kernels.h"

namespace tetrion::cuda::sim {
namespace {

BlockRunner* g_current = nullptr;  // read by the thread below alone
// The host thread whose block runs; another one that asks is in no kernel. Not a thread_local: a
// fiber may go on under another host thread.
std::atomic<std::thread::id> g_thread;

struct RunningHere {
  explicit RunningHere(BlockRunner* runner) {
    g_current = runner;
    g_thread.store(std::this_thread::get_id());
  }
  ~RunningHere() { g_thread.store({}); }
  RunningHere(const RunningHere&) = delete;
  RunningHere& operator=(const RunningHere&) = delete;
};

std::string ToText(const Dim3& index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

bool SamePlace(const CodeLocation& a, const CodeLocation& b) {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

}  // namespace

BlockRunner* BlockRunner::Current() {
  return g_thread.load() == std::this_thread::get_id() ? g_current : nullptr;
}

Dim3 BlockRunner::ThreadIndex(std::size_t thread) const {
  const auto t = static_cast<unsigned>(thread);
  const Dim3& size = call_->block;
  return {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
}

std::string BlockRunner::Place() const {
  return "kernel launched at " + sim::ToText(call_->where) + ", block " + ToText(block_) +
         ", thread " + ToText(ThreadIndex(current_));
}

bool BlockRunner::StackEndsAt(const void* address) const {
  const Fiber* fiber = threads_[current_].fiber;
  return fiber != nullptr && fiber->EndsAt(address);
}

void BlockRunner::SetState(std::size_t thread, State state) {
  threads_[thread].state = state;
  const std::uint64_t bit = std::uint64_t{1} << thread % 64;
  if (state == State::kReady) {
    ready_[thread / 64] |= bit;
  } else {
    ready_[thread / 64] &= ~bit;
  }
}

// The first or last thread that is ready, or one behind a random place.
std::optional<std::size_t> BlockRunner::Pick() {
  const std::size_t words = (threads_.size() + 63) / 64;
  const Order order = scheduler_->schedule().order;
  if (order == Order::kReverse) {
    for (std::size_t w = words; w-- > 0;) {
      if (ready_[w] != 0) return w * 64 + 63 - static_cast<unsigned>(std::countl_zero(ready_[w]));
    }
    return {};
  }
  std::size_t from = 0;
  if (order == Order::kRandom) {
    from = scheduler_->PickThread(static_cast<std::uint32_t>(threads_.size()));
    const std::uint64_t word = ready_[from / 64] & (~std::uint64_t{0} << from % 64);
    if (word != 0) return from / 64 * 64 + static_cast<unsigned>(std::countr_zero(word));
    from = from / 64 + 1;
  }
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t w = (from + i) % words;
    if (ready_[w] != 0) return w * 64 + static_cast<unsigned>(std::countr_zero(ready_[w]));
  }
  return {};
}

std::optional<Finding> BlockRunner::Run(const KernelCall& call, const Dim3& block,
                                        Scheduler& scheduler) {
  call_ = &call;
  scheduler_ = &scheduler;
  block_ = block;
  threads_.assign(call.block.count(), {});
  ready_.fill(0);
  for (std::size_t t = 0; t < threads_.size(); ++t) SetState(t, State::kReady);
  live_ = threads_.size();
  ended_ = at_barrier_ = 0;
  stopping_ = false;
  finding_.reset();
  shared_.Begin(call.shared_bytes);
  SetKernelIndices(call.grid, call.block, block);
  const RunningHere here(this);
  try {
    RunUntilDone();
  } catch (const std::exception& error) {  // no memory for one stack more
    Note({Diagnosis::kException, call.where, error.what()});
  }
  StopWaiting();
  return finding_;
}

void BlockRunner::RunUntilDone() {
  while (live_ > 0 && !finding_) {
    const std::optional<std::size_t> next = Pick();
    if (!next) {
      Note(Stuck());
      return;
    }
    Enter(*next);
  }
}

// Goes on with a thread, and with others that have not begun, until a thread waits or one that
// waited goes first.
void BlockRunner::Enter(std::size_t thread) {
  current_ = thread;
  SetThreadIndex(ThreadIndex(thread));
  if (Fiber* fiber = threads_[thread].fiber) {
    fiber->Resume();
    if (fiber->idle()) fibers_.Give(*fiber);
    return;
  }
  Fiber& fiber = fibers_.Take();
  fiber.Begin([this, &fiber] { RunThreads(fiber); });
  if (fiber.idle()) fibers_.Give(fiber);
}

void BlockRunner::RunThreads(Fiber& fiber) {
  for (;;) {
    threads_[current_].fiber = &fiber;
    RunThread();
    if (finding_ || stopping_) return;
    const std::optional<std::size_t> next = Pick();
    if (!next || threads_[*next].fiber != nullptr) return;
    current_ = *next;
    SetThreadIndex(ThreadIndex(current_));
  }
}

// No exception leaves it: a fiber that goes idle handles none.
void BlockRunner::RunThread() {
  try {
    call_->body();
    EndThread(current_);
  } catch (const Stopped&) {
    // The finding is noted already.
  } catch (const KernelFault& fault) {
    Note(fault);
  } catch (const std::exception& error) {
    Note({Diagnosis::kException, call_->where, error.what()});
  } catch (...) {
    Note({Diagnosis::kException, call_->where, "what it threw is no std::exception"});
  }
  Thread& thread = threads_[current_];
  thread.fiber = nullptr;
  if (thread.state != State::kEnded) SetState(current_, State::kEnded);
}

void BlockRunner::Note(const KernelFault& fault) {
  if (finding_) return;
  finding_ = Finding{fault.what, fault.where,
                     std::string(Name(fault.what)) + " at " + sim::ToText(fault.where) + ": " +
                         fault.text + " (" + Place() + ")"};
}

void BlockRunner::Suspend() {
  const std::size_t thread = current_;
  threads_[thread].fiber->Suspend();
  TETRION_CHECK(current_ == thread, "a fiber goes on with its thread");
  if (stopping_) throw Stopped();
}

// Unwinds what still waits in a block that was given up.
void BlockRunner::StopWaiting() {
  stopping_ = true;
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (threads_[t].fiber != nullptr) Enter(t);
  }
}

void BlockRunner::EndThread(std::size_t thread) {
  SetState(thread, State::kEnded);
  --live_;
  ++ended_;
  const std::size_t first = thread / kWarpThreads * kWarpThreads;
  const std::uint32_t bit = 1U << thread % kWarpThreads;
  for (std::size_t t = first; t < first + kWarpThreads && t < threads_.size(); ++t) {
    const Thread& other = threads_[t];
    if (other.state == State::kInWarp && (other.warp.mask & bit) != 0) {
      throw KernelFault{
          Diagnosis::kMaskNamesEndedLane, other.where,
          "the mask names lane " + std::to_string(thread % kWarpThreads) + ", which returned"};
    }
  }
  if (live_ > 0 && at_barrier_ == live_) PassBarrier();
}

std::size_t BlockRunner::WaitAtBarrier(bool vote, CodeLocation where) {
  threads_[current_].where = where;
  threads_[current_].vote = vote;
  SetState(current_, State::kAtBarrier);
  ++at_barrier_;
  if (at_barrier_ == live_) PassBarrier();
  Suspend();
  return threads_[current_].result;
}

// All threads that have not returned wait at barriers.
void BlockRunner::PassBarrier() {
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier) continue;
    if (first == nullptr) first = &thread;
    if (!SamePlace(first->where, thread.where)) {
      throw KernelFault{
          Diagnosis::kDifferentBarriers, first->where,
          "some threads of the block wait here, others at " + sim::ToText(thread.where)};
    }
  }
  if (ended_ > 0) {
    throw KernelFault{Diagnosis::kReturnedBeforeBarrier, first->where,
                      std::to_string(at_barrier_) + " threads wait, " + std::to_string(ended_) +
                          " have returned"};
  }
  at_barrier_ = 0;
  const auto votes =
      std::count_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.vote; });
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    threads_[t].result = static_cast<std::uint64_t>(votes);
    SetState(t, State::kReady);
  }
}

std::uint64_t BlockRunner::WaitInWarp(const WarpCall& call, CodeLocation where) {
  CheckMask(call.mask, where);
  threads_[current_].where = where;
  threads_[current_].warp = call;
  SetState(current_, State::kInWarp);
  TryWarp(current_ / kWarpThreads, call.mask);
  Suspend();
  return threads_[current_].result;
}

void BlockRunner::CheckMask(std::uint32_t mask, CodeLocation where) const {
  if ((mask >> lane() & 1U) == 0) {
    throw KernelFault{Diagnosis::kOutsideMask, where,
                      "lane " + std::to_string(lane()) + " calls with a mask that leaves it out"};
  }
  const std::size_t first = current_ / kWarpThreads * kWarpThreads;
  for (std::size_t l = 0; l < kWarpThreads; ++l) {
    if ((mask >> l & 1U) == 0) continue;
    if (first + l >= threads_.size() || threads_[first + l].state == State::kEnded) {
      throw KernelFault{Diagnosis::kMaskNamesEndedLane, where,
                        "the mask names lane " + std::to_string(l) +
                            (first + l < threads_.size() ? ", which returned"
                                                         : ", which the block does not have")};
    }
  }
}

// Ends the wait of the mask's lanes once all of them are there.
void BlockRunner::TryWarp(std::size_t warp, std::uint32_t mask) {
  const Thread& caller = threads_[current_];
  for (std::size_t l = 0; l < kWarpThreads; ++l) {
    if ((mask >> l & 1U) == 0) continue;
    const Thread& other = threads_[warp * kWarpThreads + l];
    if (other.state != State::kInWarp || other.warp.mask != mask) return;
    if (other.warp.what == caller.warp.what && SamePlace(other.where, caller.where)) continue;
    throw KernelFault{
        Diagnosis::kDifferentWarpOperations, caller.where,
        "lane " + std::to_string(l) + " of the mask is at " + sim::ToText(other.where)};
  }
  PassWarp(warp, mask);
}

void BlockRunner::PassWarp(std::size_t warp, std::uint32_t mask) {
  Thread* const lanes = &threads_[warp * kWarpThreads];
  const auto first = static_cast<std::size_t>(std::countr_zero(mask));
  const WarpOperation what = lanes[first].warp.what;
  const bool own = what == WarpOperation::kShuffle || what == WarpOperation::kMatch;
  for (std::size_t l = first; l < kWarpThreads; ++l) {
    if ((mask >> l & 1U) == 0) continue;
    lanes[l].result = own || l == first ? WarpResult(lanes, l) : lanes[first].result;
    SetState(warp * kWarpThreads + l, State::kReady);
  }
}

// Of one lane; all lanes of its mask have called.
std::uint64_t BlockRunner::WarpResult(const Thread* lanes, std::size_t lane) const {
  const WarpCall& call = lanes[lane].warp;
  if (call.what == WarpOperation::kShuffle) {
    if ((call.mask >> call.source & 1U) != 0) return lanes[call.source].warp.value;
    throw KernelFault{Diagnosis::kOutsideMask, lanes[lane].where,
                      "lane " + std::to_string(lane) + " reads from lane " +
                          std::to_string(call.source) + ", which the mask leaves out"};
  }
  std::uint64_t result = 0;
  bool first = true;
  for (std::size_t l = 0; l < kWarpThreads; ++l) {
    if ((call.mask >> l & 1U) == 0) continue;
    const std::uint64_t value = lanes[l].warp.value;
    const std::uint64_t bit = std::uint64_t{1} << l;
    if (call.what == WarpOperation::kBallot && value != 0) result |= bit;
    if (call.what == WarpOperation::kMatch && value == call.value) result |= bit;
    if (call.what == WarpOperation::kReduce) result = first ? value : call.combine(result, value);
    first = false;
  }
  return result;
}

KernelFault BlockRunner::Stuck() const {
  const Thread* barrier = nullptr;
  const Thread* warp = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kAtBarrier) barrier = &thread;
    if (thread.state == State::kInWarp) warp = &thread;
  }
  TETRION_CHECK(warp != nullptr, "a barrier that all have reached is passed");
  return {Diagnosis::kDeadlock, warp->where,
          barrier == nullptr
              ? std::string("every lane waits for one that waits with another mask")
              : "lanes wait here for others that wait at " + sim::ToText(barrier->where)};
}

}  // namespace tetrion::cuda::sim
