#include "lib/collect/credit_queue.h"

namespace tetrion {

TakeResult CreditQueue::Take(Token& token, std::int64_t timeout_ns) {
  MutexLock lock(mu_);
  if (State() == TakeResult::kToken && tokens_.empty()) filled_.WaitFor(mu_, timeout_ns);
  if (State() != TakeResult::kToken) return State();
  if (tokens_.empty()) return TakeResult::kTimeout;
  token = tokens_.front();
  tokens_.pop_front();
  return TakeResult::kToken;
}

void CreditQueue::AcceptFence() {
  MutexLock lock(mu_);
  if (State() == TakeResult::kFenced) {
    state_.store(TakeResult::kToken, std::memory_order_relaxed);
  }
}

void CreditQueue::Push(std::span<const Token> tokens) {
  {
    MutexLock lock(mu_);
    if (State() == TakeResult::kDrain) return;
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  filled_.NotifyOne();
}

std::size_t CreditQueue::size() const {
  MutexLock lock(mu_);
  return tokens_.size();
}

std::vector<Token> CreditQueue::Drain() {
  std::vector<Token> left;
  {
    MutexLock lock(mu_);
    state_.store(TakeResult::kDrain, std::memory_order_relaxed);
    left.assign(tokens_.begin(), tokens_.end());
    tokens_.clear();
  }
  filled_.NotifyAll();
  return left;
}

void CreditQueue::Fence() {
  {
    MutexLock lock(mu_);
    if (State() == TakeResult::kDrain) return;
    fences_.fetch_add(1, std::memory_order_relaxed);
    state_.store(TakeResult::kFenced, std::memory_order_release);  // pairs with State
    tokens_.clear();
  }
  filled_.NotifyAll();
}

}  // namespace tetrion
