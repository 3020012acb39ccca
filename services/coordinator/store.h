#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/wire/messages.h"
#include "services/coordinator/ledger.h"
#include "services/coordinator/process_table.h"
#include "services/coordinator/session_table.h"
#include "services/coordinator/slot_table.h"

namespace tetrion::coordinator {

// Figures of the run that only make sense together; every change carries all of them.
struct RunCounts {
  LedgerCounts tokens;
  std::uint64_t next_token = 0;
  std::uint64_t next_session = 1;  // sequence number
  std::uint64_t env_steps = 0;
  std::uint64_t steps_forgotten = 0;  // of processes that are not in the store any more
  std::uint32_t version_first = 1;    // block of the present learner
  std::uint32_t version_limit = 1;    // end of the last block reserved
  double return_best = 0;             // of all accounted episodes; with tokens.done > 0
  // How long coordinators have served the run; the file has it as of the last group, to a second.
  double served_s = 0;
};

// Accounted episodes of one report batch: duplicates and refused ones are not in it.
struct ReportRow {
  std::uint64_t session = 0;
  std::uint64_t run_id = 0;  // as their sender said, for who checks the account
  std::uint64_t batch = 0;
  std::vector<wire::EpisodeReport> episodes;
};

// One step of the coordinator's state, written whole or not at all.
struct StoreChange {
  RunCounts counts;
  std::vector<LedgerRange> ranges;
  std::optional<ReportRow> report;
  std::vector<Session> sessions;         // opened or changed
  std::vector<std::uint64_t> ended;      // session numbers
  std::vector<Process> processes;        // changed
  std::vector<std::uint64_t> forgotten;  // process numbers
  SlotChanges slots;
};

// What a start reads.
struct StoredRun {
  std::uint64_t epoch = 0;  // of this start
  std::uint64_t run_id = 0;
  RunCounts counts;
  std::vector<LedgerRange> open_ranges;
  std::vector<Session> sessions;
  std::vector<Process> processes;
  std::vector<Slot> slots;                         // those that were ever given out, by number
  std::vector<wire::EpisodeReport> last_episodes;  // at most kLastEpisodes, oldest first
};

enum class CommitResult : std::uint8_t { kOk, kPaused };

// What survives a loss of power. A process that dies loses nothing of either kind.
enum class Durability : std::uint8_t {
  // Synced before Commit returns: grants, sessions and their ends, versions, slots, epochs.
  kPromise,
  // Synced with the next promise or checkpoint: episodes, steps.
  kReport,
};

// The run's SQLite file (WAL). Changes are applied in order, each group in one transaction, so that
// the file always holds the state after some prefix of the changes. One thread at a time. Throws
// Error(kTryAgain) for faults that do not pass by themselves; those that may are a result.
//
// Bounded: of the accounted episodes the newest keep_episodes stay, and what was removed is counted
// in the file; ranges stay until their tokens are all done.
class Store {
 public:
  static constexpr std::size_t kLastEpisodes = wire::kMeanEpisodes;
  struct Config {
    std::uint64_t keep_episodes = 1'000'000;  // at most 32 bytes each
    // Of the write-ahead log: then it is copied into the file.
    std::uint64_t log_bytes = std::uint64_t{32} << 20;
  };

  // Opens or creates; a file of an older layout becomes one of the present one. Throws
  // Error(kConfig) for a file of a layout that this build does not know,
  // Error(kTryAgain) while it cannot be written.
  explicit Store(const std::string& path) : Store(path, Config()) {}
  Store(const std::string& path, const Config& config);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Counts the start (epoch + 1, committed and synced), then reads the state. `fresh_run_id` names
  // a new run, which one that `has_trained` is not. Throws Error(kConfig) when the stored figures
  // contradict each other, or are not there although the run has trained.
  StoredRun Load(std::uint64_t fresh_run_id, bool has_trained = false);
  // One transaction for all of them; kPaused leaves the file as it was, pause_reason() says why.
  [[nodiscard]] CommitResult Commit(std::span<const StoreChange> changes,
                                    Durability durability = Durability::kPromise);
  const std::string& pause_reason() const { return pause_reason_; }
  // Whether the write-ahead log has grown to `log_bytes` and should be copied into the file, which
  // Commit never does.
  bool LogIsFull() const;
  // Copies it; false while another process reads the file in a state that is older than the log's
  // end. A log of twice its size was held by such a reader: its file is emptied as well.
  bool CopyLog();
  // Of the log's pages that may not be in the file yet.
  std::uint64_t LogBytes() const;
  // Test hook: the file may not grow beyond so many pages; 0: no limit. Any thread; takes effect at
  // the next Commit.
  void LimitPages(int pages) { page_limit_.store(pages, std::memory_order_relaxed); }
  int Pages();

 private:
  struct Impl;
  void WriteGroup(std::span<const StoreChange> changes);
  void WriteRanges(std::span<const StoreChange> changes);
  void Write(const StoreChange& change);
  void WriteMembers(const StoreChange& change);
  void WriteCounts(const RunCounts& counts);
  void Prune(std::uint64_t added);
  void RefuseLostAccount();
  void ReadCounts(StoredRun& run);
  void ReadRanges(StoredRun& run);
  void ReadMembers(StoredRun& run);
  // Returns which report cannot be read, as one clause; empty: none.
  std::string ReadEpisodes(StoredRun& run);

  // Episodes in the file and those removed from it.
  struct Kept {
    std::uint64_t kept = 0, pruned = 0;
  };

  const Config config_;
  std::unique_ptr<Impl> impl_;
  Kept episodes_;
  double served_s_ = 0;  // in the file, or being written to it
  std::string pause_reason_;
  std::atomic<int> page_limit_{0};  // a lone value: relaxed
};

}  // namespace tetrion::coordinator
