#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/frame/row_layout.h"
#include "services/learner/boards.h"
#include "services/learner/remote_board.h"
#include "services/learner/ring_sources.h"
#include "services/learner/row_source.h"

namespace tetrion::learner {

// Follows the coordinator's list of rings: attaches each ring once, as a LocalRing or, after
// telling inference of it, as an InferredRing; gives up those that cannot be attached; reports
// which have ended.
//
//   listed ──▶ waiting ──▶ attached ──▶ ended: reported as ingest says
//                 └──────▶ given up: reported as kUnattachable, with the reason
//
// A ring of the first list whose file is gone is what a kill of everything leaves: it counts as its
// actor's death. Should the actor live, it registers again, and announces a ring that is new.
//
// A ring that cannot be attached for now waits: one that is missing or not sealed yet until
// `retry_ns` have passed, one for which memory or open files lack here until `shortage_ns` have;
// one that can never be (a slot that the replay lacks, another layout, a damaged header) is given
// up at once. A ring's file is removed then only once no process holds its lock: the ring may be
// alive and the fault ours.
//
// The list also tells which rings of the run are orphans: their actors died before they had
// announced them, or while no learner was there. What they held is unknown to the ledger, so it
// only takes memory: those of the first list are removed at once, others when two looks have found
// them.
//
// A ring of a remote worker is no file: the rows thread offers it once its actor has opened it. One
// that is never opened counts as its actor's death after `remote_silence_ns`, or once its owner's
// session has ended, so that the actor, should it be cut off, may come back.
//
// A ring is named by path and owner. What is attached is known by its path alone, and follows the
// list: a worker keeps its ring when its actor gets another session, which then owns it. A stream
// that silence has ended keeps the owner that was silent: what comes of the actor's next session is
// a ring that waits anew. Time in which this thread did not run is no silence.
//
// Thread role: the ingest thread. Nothing here blocks.
class RingAttacher final : public SourceFinder {
 public:
  struct Config {
    std::uint64_t run_id = 0;
    std::string shm_dir;
    int shards = 0;  // slots of the replay
    RowLayout layout;
    std::string refused;            // why no ring is attached at all; empty: they are
    RemoteBoard* remote = nullptr;  // null: no remote actors are served
    std::int64_t remote_silence_ns = 60 * kNanosPerSecond;
    // How long a ring may be missing or unfinished before it is given up, how often it is tried.
    std::int64_t retry_ns = 2 * kNanosPerSecond;
    std::int64_t retry_every_ns = 50 * kNanosPerMilli;
    // The same while this process is short of files or memory, which no actor can help.
    std::int64_t shortage_ns = 60 * kNanosPerSecond;
    // How long another process may hold the folder's lock, or a ring that was given up, before
    // files stay where they are, for the next run to remove; longer than any creation takes, and
    // than a refused actor lives.
    std::int64_t remove_within_ns = 60 * kNanosPerSecond;
    // How often orphans are looked for: longer than an announcement takes to be listed.
    std::int64_t look_every_ns = 10 * kNanosPerSecond;
  };
  // References outlive the attacher and its sources.
  RingAttacher(Config config, RingBoard& board, StreamBoard& streams,
               const Clock& clock = MonotonicClock::Get());

  // Takes a new list, tries what is due, returns what was attached.
  std::vector<std::unique_ptr<RowSource>> Poll() override;
  void Ended(const SourceId& id, SourceState state, const std::string& reason) override;

  std::uint64_t waiting() const override { return waiting_count_.load(std::memory_order_relaxed); }
  std::uint64_t given_up() const override { return given_up_.load(std::memory_order_relaxed); }

 private:
  struct Waiting {
    wire::RingInfo info;
    std::int64_t since_ns;
    std::int64_t next_try_ns;
    bool is_old;             // of the first list: an earlier learner may have had it
    std::string last_error;  // empty before the first try
  };

  struct Attached {
    std::uint64_t owner;                         // as last listed, while its rows can still come
    std::shared_ptr<const RemoteStream> stream;  // of a remote ring
  };

  void TakeList();
  void StartWaiting(const wire::RingInfo& info);
  void ForgiveStall();
  bool TryAttach(Waiting& ring, std::vector<std::unique_ptr<RowSource>>& attached);
  std::unique_ptr<RowSource> Attach(const wire::RingInfo& info);
  bool TryTakeRemote(Waiting& ring, std::vector<std::unique_ptr<RowSource>>& attached);
  bool HasTime(Waiting& ring, std::int64_t patience_ns, const std::string& error);
  void CountAsDead(const wire::RingInfo& info, const std::string& reason);
  void GiveUp(const wire::RingInfo& info, const std::string& reason);
  bool Knows(const std::string& name) const;
  void LookForOrphans();
  void RemoveSoon(const std::string& path);
  void RemoveDead();

  const Config config_;
  RingBoard& board_;
  StreamBoard& streams_;
  const Clock& clock_;
  std::uint64_t seen_ = 0;  // board change last taken
  std::vector<wire::RingInfo> list_;
  std::vector<Waiting> waiting_;
  std::map<std::string, Attached> attached_;  // by path
  std::int64_t polled_ns_ = 0;                // the last time
  bool listed_ = false;                       // the first list has come
  std::int64_t next_look_ns_ = 0;             // for orphans
  std::set<std::string> unknown_;  // dead rings that the last look found and the list lacks
  // What is to be removed as soon as the folder's lock is free: given up, or orphans.
  std::vector<std::string> dead_paths_;
  std::int64_t remove_until_ns_ = 0;
  std::int64_t next_remove_ns_ = 0;
  // Written by the ingest thread; relaxed.
  std::atomic<std::uint64_t> waiting_count_{0};
  std::atomic<std::uint64_t> given_up_{0};
};

}  // namespace tetrion::learner
