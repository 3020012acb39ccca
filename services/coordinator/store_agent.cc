#include "services/coordinator/store_agent.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion::coordinator {

StoreAgent::StoreAgent(Store& store, const Clock& clock)
    : store_(store), clock_(clock), event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.valid()) {
    throw Error(ExitCode::kTryAgain, std::string("no event for the store: ") +
                                         std::strerror(errno) + "; raise the open-files limit");
  }
}

std::uint64_t StoreAgent::Push(StoreChange change, Durability durability) {
  TETRION_CHECK(Queued() < kMaxQueued, "the control agent asks HasRoom before it works");
  const std::size_t reports = change.report.has_value() ? change.report->episodes.size() : 0;
  queued_.fetch_add(1, std::memory_order_release);
  ++pushed_;
  {
    MutexLock lock(mu_);
    queued_reports_ += reports;
    queued_promises_ += durability == Durability::kPromise ? 1 : 0;
    queue_.push_back({std::move(change), pushed_, durability, clock_.NowNs()});
  }
  pushed_cv_.NotifyOne();
  return pushed_;
}

void StoreAgent::DrainEvent() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof(count));
}

bool StoreAgent::Due() {
  if (queue_.empty()) return false;
  return queued_promises_ > 0 || queued_reports_ >= kEnoughReports ||
         clock_.NowNs() - queue_.front().pushed_ns >= kGroupWaitNs;
}

void StoreAgent::TakeGroup() {
  MutexLock lock(mu_);
  std::size_t reports = 0;
  group_durability_ = Durability::kReport;
  while (!queue_.empty() && reports < kGroupReports) {
    Item& item = queue_.front();
    const std::size_t episodes =
        item.change.report.has_value() ? item.change.report->episodes.size() : 0;
    reports += episodes;
    queued_reports_ -= episodes;
    if (item.durability == Durability::kPromise) {
      --queued_promises_;
      group_durability_ = Durability::kPromise;
    }
    group_ticket_ = item.ticket;
    group_.push_back(std::move(item.change));
    queue_.pop_front();
  }
}

// Bounds the log: without readers by what one group adds to a full one.
void StoreAgent::TendLog() {
  const std::int64_t now_ns = clock_.NowNs();
  if (store_.LogIsFull() && now_ns >= log_due_ns_) {
    const bool copied = store_.CopyLog();
    log_retry_ns_ = copied ? kLogRetryNs : std::min(2 * log_retry_ns_, kMaxLogRetryNs);
    log_due_ns_ = copied ? now_ns : now_ns + log_retry_ns_ / 2;
  }
  const std::uint64_t bytes = store_.LogBytes();
  log_bytes_.store(bytes, std::memory_order_relaxed);
  const bool much = bytes >= kMuchLogBytes;
  if (much && !log_blamed_) {
    log::warn(
        "tetrion.db-wal holds {} MiB that cannot be copied into tetrion.db: another process reads "
        "it (fuser tetrion.db; copy the run folder to read it), or its disk is full or fails",
        bytes >> 20);
  }
  log_blamed_ = much;
}

int StoreAgent::DoWork() {
  TendLog();
  if (group_.empty()) {
    {
      MutexLock lock(mu_);
      if (!Due()) {
        std::int64_t wait_ns = kGroupWaitNs;
        if (!queue_.empty()) {
          wait_ns = kGroupWaitNs - (clock_.NowNs() - queue_.front().pushed_ns);
        }
        pushed_cv_.WaitFor(mu_, std::clamp<std::int64_t>(wait_ns, 0, kGroupWaitNs));
      }
      if (!Due()) return 0;
    }
    TakeGroup();
  } else if (clock_.NowNs() < retry_at_ns_) {
    MutexLock lock(mu_);
    pushed_cv_.WaitFor(mu_, kGroupWaitNs);
    return 0;
  }
  return WriteGroup();
}

void StoreAgent::SetPause(const std::string& reason) {
  const bool paused = !reason.empty();
  if (paused != Paused()) {
    if (paused) {
      log::error("the store cannot be written: {}; no tokens are granted until it can", reason);
    } else {
      log::info("the store can be written again");
    }
  }
  {
    MutexLock lock(mu_);
    pause_reason_ = reason;
  }
  paused_.store(paused, std::memory_order_release);
}

std::string StoreAgent::PauseReason() const {
  MutexLock lock(mu_);
  return pause_reason_;
}

int StoreAgent::WriteGroup() {
  if (store_.Commit(group_, group_durability_) == CommitResult::kPaused) {
    SetPause(store_.pause_reason());
    retry_at_ns_ = clock_.NowNs() + kRetryNs;
    return 0;
  }
  if (Paused()) SetPause("");
  const std::size_t written = group_.size();
  group_.clear();
  queued_.fetch_sub(written, std::memory_order_release);
  commits_.fetch_add(1, std::memory_order_relaxed);
  committed_.store(group_ticket_, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof(one));
  return static_cast<int>(written);
}

std::string StoreAgent::Unwritten() const {
  return committed() == pushed() ? "" : PauseReason();
}

void StoreAgent::OnClose() {
  for (;;) {
    if (group_.empty()) TakeGroup();
    if (group_.empty() || WriteGroup() == 0) return;
  }
}

}  // namespace tetrion::coordinator
