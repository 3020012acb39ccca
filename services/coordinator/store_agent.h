#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/file.h"
#include "lib/core/mutex.h"
#include "services/coordinator/store.h"

namespace tetrion::coordinator {

// Writes the control agent's changes in groups. Thread roles: the control agent pushes and reads
// what is committed; the store agent owns the Store.
//
// Every change has a ticket, 1, 2, 3, ...; committed() is the last ticket that is on disk, and
// event_fd() becomes readable when it moves. The agent that promised something sends the
// promise once its ticket is committed.
//
// A group takes whole changes until it has kGroupReports episodes. A promise is written at once and
// synced; fewer than kEnoughReports episodes wait up to kGroupWaitNs for more. While the file
// cannot be written (a full disk, a lock, an I/O error) the queue is kept and tried again every
// kRetryNs.
//
// The store's log is copied into its file between groups. A process that reads the file for long
// keeps the log from being begun anew: it is then tried ever more rarely, and said.
class StoreAgent final : public Agent {
 public:
  static constexpr std::size_t kMaxQueued = 4096;  // changes; see HasRoom
  // Episodes that are written without waiting for more.
  static constexpr std::size_t kEnoughReports = 4096;
  static constexpr std::size_t kGroupReports = 16384;  // episodes of one transaction
  static constexpr std::int64_t kGroupWaitNs = 50 * kNanosPerMilli;
  static constexpr std::int64_t kRetryNs = 500 * kNanosPerMilli;
  static constexpr std::int64_t kLogRetryNs = 250 * kNanosPerMilli;  // doubled by failures, up to
  static constexpr std::int64_t kMaxLogRetryNs = 8 * kNanosPerSecond;
  static constexpr std::uint64_t kMuchLogBytes = std::uint64_t{256} << 20;  // a reader is blamed

  // `store` must outlive the agent and is used by the agent's thread only.
  StoreAgent(Store& store, const Clock& clock);

  // Control agent only. Room for a further change; the control agent stops reading without it.
  bool HasRoom() const { return Queued() < kMaxQueued - kReserve; }
  // Returns the change's ticket. The reserve behind HasRoom takes what one cycle may still push.
  std::uint64_t Push(StoreChange change, Durability durability);
  std::uint64_t pushed() const { return pushed_; }
  // Clears the event. Control agent only.
  void DrainEvent();

  // Any thread.
  std::uint64_t committed() const { return committed_.load(std::memory_order_acquire); }
  bool Paused() const { return paused_.load(std::memory_order_acquire); }
  // Why, for people; empty when not paused.
  std::string PauseReason() const TETRION_EXCLUDES(mu_);
  // After both threads have ended: why changes are not in the store; empty when all are.
  std::string Unwritten() const TETRION_EXCLUDES(mu_);
  std::uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  std::uint64_t log_bytes() const { return log_bytes_.load(std::memory_order_relaxed); }
  std::size_t Queued() const { return queued_.load(std::memory_order_acquire); }
  int event_fd() const { return event_.get(); }

  // Agent.
  std::string name() const override { return "store"; }
  // Blocks up to 50 ms for work, or until a group is due.
  int DoWork() override;
  // Writes what is left, unless the file cannot be written.
  void OnClose() override;

 private:
  static constexpr std::size_t kReserve = 1024;

  struct Item {
    StoreChange change;
    std::uint64_t ticket = 0;
    Durability durability = Durability::kReport;
    std::int64_t pushed_ns = 0;
  };

  // Whether a group should be written now.
  bool Due() TETRION_REQUIRES(mu_);
  void TakeGroup() TETRION_EXCLUDES(mu_);
  int WriteGroup();
  void TendLog();
  void SetPause(const std::string& reason) TETRION_EXCLUDES(mu_);

  Store& store_;
  const Clock& clock_;
  const FileDescriptor event_;
  // Control agent only.
  std::uint64_t pushed_ = 0;
  // Shared.
  mutable Mutex mu_;
  CondVar pushed_cv_;
  std::deque<Item> queue_ TETRION_GUARDED_BY(mu_);
  std::size_t queued_reports_ TETRION_GUARDED_BY(mu_) = 0;
  std::size_t queued_promises_ TETRION_GUARDED_BY(mu_) = 0;
  std::string pause_reason_ TETRION_GUARDED_BY(mu_);
  std::atomic<std::size_t> queued_{0};       // queue and group; pairs with HasRoom
  std::atomic<std::uint64_t> committed_{0};  // store agent writes, release
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> log_bytes_{0};  // store agent writes
  std::atomic<bool> paused_{false};          // store agent writes; pairs with Paused
  // Store agent only: the group being written, kept while the file cannot be.
  std::vector<StoreChange> group_;
  std::uint64_t group_ticket_ = 0;
  Durability group_durability_ = Durability::kReport;
  std::int64_t retry_at_ns_ = 0;
  std::int64_t log_due_ns_ = 0;
  std::int64_t log_retry_ns_ = kLogRetryNs;
  bool log_blamed_ = false;
};

}  // namespace tetrion::coordinator
