#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/core/mutex.h"

namespace tetrion {

// The tokens one worker may play next: filled by the link thread, emptied by the worker.
// Bounded by its filler: the link keeps it between one and two `low_water` marks.
class CreditQueue final : public TokenSource {
 public:
  // Worker thread.
  TakeResult Take(Token& token, std::int64_t timeout_ns) override;
  // A thread that sees a fence here sees it counted.
  TakeResult State() const override { return state_.load(std::memory_order_acquire); }
  void AcceptFence() override;

  // Link thread. Wakes a waiting worker.
  void Push(std::span<const Token> tokens);
  std::size_t size() const;
  // No token is handed out any more; returns those not taken. Wins over a fence, for good.
  std::vector<Token> Drain();
  // The session ended: drops what is queued and makes the worker cut its lanes. Tokens pushed
  // afterwards wait until the worker has accepted the fence.
  void Fence();

  // Any thread: calls of Fence that counted. One thread fences all queues of a link in turn, so
  // where their numbers differ it is still at it.
  std::uint64_t fences() const { return fences_.load(std::memory_order_relaxed); }

 private:
  mutable Mutex mu_;
  CondVar filled_;
  std::deque<Token> tokens_ TETRION_GUARDED_BY(mu_);
  // Written under mu_; read without it by State, where a row late does not matter.
  std::atomic<TakeResult> state_{TakeResult::kToken};
  std::atomic<std::uint64_t> fences_{0};  // written under mu_, with state_
};

}  // namespace tetrion
