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
#include "lib/shm/ring_consumer.h"
#include "services/learner/ring_attacher.h"
#include "services/learner/ring_board.h"
#include "services/learner/stream_board.h"

namespace tetrion::learner {

// Written by the ingest thread, read by anyone; relaxed.
struct IngestCounters {
  std::atomic<std::uint64_t> rows{0};         // ring rows copied into the replay
  std::atomic<std::uint64_t> rings{0};        // rings attached now
  std::atomic<std::uint64_t> leaving{0};      // rings that ended and whose files are still there
  std::atomic<std::uint64_t> quarantined{0};  // rings given up for impossible cursors or rows
  std::atomic<std::uint64_t> rows_lost{0};    // published rows that never reached the replay
  std::atomic<std::int64_t> limited_ns{0};    // waited for the trainer
};

// Copies rows from every ring into the ring's replay shard. Ends a ring (drains, unlinks, reports
// it) when its producer closed it or died; quarantines one whose cursors or rows are impossible;
// reports one that cannot be attached (ring_attacher.h).
// Of a streamed ring it takes only the rows that inference has answered; void ones are counted
// lost.
//
// Thread role: DoWork on the ingest thread. Waits on one bell for all rings.
class IngestAgent final : public Agent {
 public:
  struct Config {
    std::uint64_t run_id = 0;
    std::string shm_dir;
    std::int32_t action_count = 0;
    CheckRecordsFn check_records = nullptr;      // ObsSpec::check
    std::int64_t wait_ns = 20 * kNanosPerMilli;  // longest single wait
    std::int64_t dead_check_ns =
        50 * kNanosPerMilli;  // how often an empty ring's owner is looked at
    // How long a ring may be missing or unfinished before it is given up.
    std::int64_t attach_retry_ns = 2 * kNanosPerSecond;
    // How long rows of a dead streamed worker wait for their answers before they count as lost.
    std::int64_t last_answers_ns = 500 * kNanosPerMilli;
  };
  // References outlive the agent.
  IngestAgent(const Config& config, ReplayGate& replay, ReplayRows& memory, Bell bell,
              RingBoard& board, StreamBoard& streams, const Clock& clock = MonotonicClock::Get());

  std::string name() const override { return "ingest"; }
  int DoWork() override;
  // Removes the files that DoWork could not yet; blocks while another process holds the folder's
  // lock, at most 30 s.
  void OnClose() override;
  const IngestCounters& counters() const { return counters_; }
  const RingAttacher& attacher() const { return attacher_; }
  // Any thread: published rows of shard `slot`'s ring that were not copied yet, as last seen.
  std::uint64_t BacklogRows(int slot) const {
    return backlog_rows_[static_cast<std::size_t>(slot)].load(std::memory_order_relaxed);
  }

 private:
  struct Ring {
    std::string path;
    int slot = 0;
    RingConsumer consumer;
    std::shared_ptr<StreamShare> stream;  // null unless the rows are decided here
    std::int64_t next_dead_check_ns = 0;
    std::int64_t dead_since_ns = 0;  // streamed: when the owner was first found dead
    bool ended = false;
    bool unlinked = false;  // once ended
  };

  void Begin(RingAttacher::Attached attached);
  int Pump(Ring& ring);
  int DropVoidRows(Ring& ring, const RingPeek& peek);
  void AwaitAnswers(Ring& ring);
  static bool HasWork(Ring& ring);
  // Of rows_, which hold what was peeked.
  bool CheckRows(Ring& ring, const RingPeek& peek);
  void LookForEnd(Ring& ring, RingStatus status);
  void End(Ring& ring, wire::RingEnd end, const std::string& reason = "");
  void UnlinkLeaving();
  void Quarantine(Ring& ring, const std::string& reason, std::uint64_t lost);
  void Sleep();

  const Config config_;
  ReplayGate& replay_;
  ReplayRows& memory_;
  Bell bell_;
  RingBoard& board_;
  StreamBoard& streams_;
  const Clock& clock_;
  RingAttacher attacher_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<std::unique_ptr<Ring>> leaving_;  // ended while the folder was locked
  std::int64_t next_unlink_ns_ = 0;
  std::vector<std::byte> rows_;  // of this turn, copied out of their ring
  IngestCounters counters_;
  std::vector<std::atomic<std::uint64_t>> backlog_rows_;  // [S]
};

}  // namespace tetrion::learner
