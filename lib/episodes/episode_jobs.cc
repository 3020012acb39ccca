#include "lib/episodes/episode_jobs.h"

#include <algorithm>
#include <utility>

#include "lib/core/clock.h"

namespace tetrion {

bool BatchRequest::FinishInPlace() {
  const MutexLock lock(mu);
  if (cancelled.load(std::memory_order_relaxed)) return false;
  if (++finished == episodes) changed.NotifyAll();
  return true;
}

bool BatchRequest::FinishStaged(const Staged& row) {
  const MutexLock lock(mu);
  if (cancelled.load(std::memory_order_relaxed)) return false;
  staged.push_back(row);
  changed.NotifyAll();
  return true;
}

void BatchRequest::Fail(std::exception_ptr failure) {
  {
    const MutexLock lock(mu);
    // Swapped, not copied: the exception that is not kept is destroyed outside the lock, since it
    // may be one of the caller's with locks of its own.
    if (error == nullptr && !cancelled.load(std::memory_order_relaxed)) std::swap(error, failure);
  }
  Cancel();
}

void BatchRequest::Cancel() {
  std::vector<Staged> left;
  {
    const MutexLock lock(mu);
    cancelled.store(true, std::memory_order_relaxed);
    left.swap(staged);
    changed.NotifyAll();
  }
  for (const Staged& row : left) row.keeper->Release(row.row);
}

std::uint32_t BatchRequest::MaxSteps(int job) const {
  if (actions.empty()) return static_cast<std::uint32_t>(steps);
  const auto first = actions.begin() + std::ptrdiff_t{job} * steps;
  return static_cast<std::uint32_t>(std::find(first, first + steps, -1) - first);
}

void EpisodeJobs::Start(std::shared_ptr<BatchRequest> request) {
  const MutexLock lock(mu_);
  request_.swap(request);
  next_job_ = 0;
  any_.store(true, std::memory_order_relaxed);
  changed_.NotifyAll();
}

void EpisodeJobs::Drop(const BatchRequest& request) {
  std::shared_ptr<BatchRequest> dropped;  // may hold the last reference: ends outside the lock
  const MutexLock lock(mu_);
  if (request_.get() != &request) return;
  dropped.swap(request_);
  any_.store(false, std::memory_order_relaxed);
}

void EpisodeJobs::Stop() {
  const MutexLock lock(mu_);
  stopped_.store(true, std::memory_order_relaxed);
  changed_.NotifyAll();
}

TakeResult EpisodeJobs::Take(const BatchRequest* bound, std::shared_ptr<BatchRequest>& request,
                             int& job, std::int64_t timeout_ns) {
  if (stopped()) return TakeResult::kDrain;
  if (timeout_ns == 0 && !any_.load(std::memory_order_relaxed)) return TakeResult::kTimeout;
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  const MutexLock lock(mu_);
  while (true) {
    if (stopped()) return TakeResult::kDrain;
    if (request_ != nullptr && (bound == nullptr || bound == request_.get())) {
      request = request_;
      job = next_job_++;
      if (next_job_ == request_->episodes) {
        request_.reset();  // the taker's reference keeps it alive
        any_.store(false, std::memory_order_relaxed);
      }
      return TakeResult::kToken;
    }
    const std::int64_t left_ns = deadline.LeftNs();
    if (left_ns == 0) return TakeResult::kTimeout;
    changed_.WaitFor(mu_, left_ns);
  }
}

}  // namespace tetrion
