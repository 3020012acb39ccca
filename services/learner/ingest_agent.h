#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/frame/specs.h"
#include "lib/replay/gate.h"
#include "lib/replay/rows.h"
#include "lib/shm/bell.h"
#include "services/learner/row_source.h"

namespace tetrion::learner {

// Written by the ingest thread, read by anyone; relaxed.
struct IngestCounters {
  std::atomic<std::uint64_t> rows{0};         // rows copied into the replay
  std::atomic<std::uint64_t> rings{0};        // sources now
  std::atomic<std::uint64_t> leaving{0};      // sources that ended and whose files are still there
  std::atomic<std::uint64_t> quarantined{0};  // sources given up as unusable
  std::atomic<std::uint64_t> rows_lost{0};    // published rows that never reached the replay
  std::atomic<std::int64_t> limited_ns{0};    // waited for the trainer
  std::atomic<std::int64_t> leased_ns{0};     // of it: for rows that an update still reads
};

// Copies rows from every source into the source's replay shard, after a look at what they hold.
//
// Another process can write where rows are peeked. For a replay in host memory they are copied out
// once, checked, and only then used. A device copies them by itself out of the source's memory,
// which is pinned for it: they are checked there, and given back to the producer once the copy has
// passed. What a hostile producer changes in between are numbers, which a trainer checks where it
// counts with them (lib/rl/minibatch.h).
//
// A source may come in the middle of its episodes: after a restart of the learner, or as that of an
// actor of another host that was silent for long and goes on, perhaps in another shard. What its
// shard held before may be another worker's, so the first row that is taken begins an episode in
// every lane (is_first, no reward).
//
// Ends a source (removes and reports it) when it says so; quarantines one that is unusable or has
// an impossible row. Rows that a source passes over as void are counted lost.
//
// Thread role: DoWork on the ingest thread. Waits on one bell for all sources.
class IngestAgent final : public Agent {
 public:
  struct Config {
    std::int32_t action_count = 0;
    CheckRecordsFn check_records = nullptr;              // ObsSpec::check
    std::int64_t wait_ns = 20 * kNanosPerMilli;          // longest wait of a cycle
    std::int64_t remove_every_ns = 50 * kNanosPerMilli;  // tries to remove what has ended
  };
  // References outlive the agent.
  IngestAgent(const Config& config, ReplayGate& replay, ReplayRows& memory, Bell bell,
              SourceFinder& finder, const Clock& clock = MonotonicClock::Get());

  std::string name() const override { return "ingest"; }
  int DoWork() override;
  // Removes the files that DoWork could not yet; blocks while another process holds the folder's
  // lock, at most 30 s.
  void OnClose() override;
  const IngestCounters& counters() const { return counters_; }
  const SourceFinder& finder() const { return finder_; }
  // Any thread: published rows of shard `shard`'s source that were not copied yet, as last seen.
  std::uint64_t BacklogRows(int shard) const {
    return backlog_rows_[static_cast<std::size_t>(shard)].load(std::memory_order_relaxed);
  }
  // Any thread: rows that shard `shard`'s source holds at most; 0 while it has none.
  std::uint64_t CapacityRows(int shard) const {
    return capacity_rows_[static_cast<std::size_t>(shard)].load(std::memory_order_relaxed);
  }
  // Any thread: rings of the bell since this agent was made that found the thread asleep, as the
  // ringing processes say.
  std::uint64_t doorbells() const { return bell_.WakesApprox() - rung_before_; }

 private:
  struct Feed {
    std::unique_ptr<RowSource> source;
    std::unique_ptr<PinnedSource> pinned;  // null: rows are copied out; goes before the source
    std::uint64_t copying = 0;             // rows pushed and not released: a device still copies
    const Event* copied = nullptr;         // behind them
    bool joined = false;                   // rows of it are in the replay
    bool ended = false;
    bool removed = false;  // once ended
  };

  void Begin(std::unique_ptr<RowSource> source);
  int Pump(Feed& feed);
  int Push(Feed& feed, const std::byte* rows, std::uint32_t count);
  bool Copied(Feed& feed);
  std::string WhatIsWrong(const std::byte* rows, const SourceRows& peeked) const;
  void Quarantine(Feed& feed, const std::string& reason);
  void End(Feed& feed, SourceState state, const std::string& reason = "");
  void RemoveLeaving();
  void Sleep();
  void NoteBacklog(int shard, std::uint64_t rows) {
    backlog_rows_[static_cast<std::size_t>(shard)].store(rows, std::memory_order_relaxed);
  }
  void NoteCapacity(int shard, std::uint64_t rows) {
    capacity_rows_[static_cast<std::size_t>(shard)].store(rows, std::memory_order_relaxed);
  }

  const Config config_;
  ReplayGate& replay_;
  ReplayRows& memory_;
  Bell bell_;
  const std::uint64_t rung_before_ = bell_.WakesApprox();
  SourceFinder& finder_;
  const Clock& clock_;
  std::vector<Feed> feeds_;
  std::size_t first_feed_ = 0;                       // whose turn is first in this cycle
  std::int64_t wait_ns_ = 0;                         // that a push may still wait in this cycle
  std::vector<std::unique_ptr<RowSource>> leaving_;  // ended while the folder was locked
  std::int64_t next_remove_ns_ = 0;
  // Of this turn, copied out of their source; empty until there is one, since a learner whose own
  // lanes play needs none and its rows are large.
  std::vector<std::byte> rows_;
  IngestCounters counters_;
  std::vector<std::atomic<std::uint64_t>> backlog_rows_, capacity_rows_;  // [S]
};

}  // namespace tetrion::learner
