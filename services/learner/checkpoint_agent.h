#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"

namespace tetrion::learner {

// Writes checkpoints on a thread of its own, so that training never waits for a disk. A full or
// failing disk is logged and tried again with the next snapshot; training goes on. Where another
// learner has taken the folder over, the thread ends with PlaceTaken.
class CheckpointAgent final : public Agent {
 public:
  // `on_written` gets the seconds of each write, on the thread that writes.
  CheckpointAgent(std::string folder, int keep_last, std::function<void(double)> on_written = {});

  // Before the threads start. This process is the folder's writer from here on; the store is what
  // it goes on from. As CheckpointStore::TakeOver; a disk that refuses is logged.
  const CheckpointStore& TakeOver();
  // The updates of the checkpoint that training goes on from.
  void GoOnFrom(std::uint64_t updates) { held_updates_.store(updates, std::memory_order_relaxed); }

  std::string name() const override { return "checkpoint"; }
  int DoWork() override;

  // Trainer thread. Replaces a snapshot that has not been written yet; returns at once.
  void Submit(TrainerState state, CheckpointInfo info);
  // After the threads have ended: writes the last snapshot. Throws as CheckpointStore::Save.
  void WriteNow(const TrainerState& state, const CheckpointInfo& info);

  // Any thread.
  std::uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  // Whether the last good write has exactly this many updates: nothing is lost by a kill.
  bool Holds(std::uint64_t updates) const {
    return held_updates_.load(std::memory_order_relaxed) == updates;
  }
  // Seconds since the last good write, before the first since the first Submit; 0 before both.
  double AgeSeconds() const;

 private:
  struct Snapshot {
    TrainerState state;
    CheckpointInfo info;
  };

  CheckpointStore store_;
  const std::function<void(double)> on_written_;
  Mutex mu_;
  CondVar submitted_;
  std::optional<Snapshot> pending_ TETRION_GUARDED_BY(mu_);
  std::atomic<std::uint64_t> written_{0}, failed_{0};
  std::atomic<std::uint64_t> held_updates_{0};
  std::atomic<std::int64_t> first_ns_{0}, last_ns_{0};  // first Submit, last good write; 0: none
};

}  // namespace tetrion::learner
