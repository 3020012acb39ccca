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
#include "services/coordinator/session_table.h"
#include "services/coordinator/slot_table.h"

namespace tetrion {

// Figures of the run that only make sense together; every change carries all of them.
struct RunCounts {
  LedgerCounts tokens;
  std::uint64_t next_token = 0;
  std::uint64_t next_session = 1;
  std::uint64_t env_steps = 0;
  std::uint32_t version_first = 1;  // block of the present learner
  std::uint32_t version_limit = 1;  // end of the last block reserved
  double return_best = 0;           // of all accounted episodes; with tokens.done > 0
};

// Accounted episodes of one report batch: duplicates and refused ones are not in it.
struct ReportRow {
  std::uint64_t session = 0;
  std::uint64_t batch = 0;
  std::vector<wire::EpisodeReport> episodes;
};

// One step of the coordinator's state, written whole or not at all.
struct StoreChange {
  RunCounts counts;
  std::vector<LedgerRange> ranges;
  std::optional<ReportRow> report;
  std::vector<Session> sessions;           // opened or changed
  std::vector<std::uint64_t> ended;        // session numbers
  std::optional<std::vector<Slot>> slots;  // the whole table
};

// What a start reads.
struct StoredRun {
  std::uint64_t epoch = 0;  // of this start
  std::uint64_t run_id = 0;
  RunCounts counts;
  std::vector<LedgerRange> open_ranges;
  std::vector<Session> sessions;
  std::vector<Slot> slots;                         // empty at the first start
  std::vector<wire::EpisodeReport> last_episodes;  // at most kLastEpisodes, oldest first
};

enum class CommitResult : std::uint8_t { kOk, kFull };

// The run's SQLite file (WAL, synchronous=NORMAL). Changes are applied in order, each group in one
// transaction, so that the file always holds the state after some prefix of the changes. One thread
// at a time. Throws Error(kTryAgain) for I/O errors other than a full disk, which is a result.
class Store {
 public:
  static constexpr std::size_t kLastEpisodes = 100;

  // Opens or creates. Throws Error(kConfig) for a file of another layout.
  explicit Store(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Counts the start (epoch + 1, committed) and reads the state. `fresh_run_id` names a new run.
  StoredRun Load(std::uint64_t fresh_run_id);
  // One transaction for all of them; kFull leaves the file as it was.
  [[nodiscard]] CommitResult Commit(std::span<const StoreChange> changes);
  // Test hook: the file may not grow beyond so many pages; 0: no limit. Any thread; takes effect at
  // the next Commit.
  void LimitPages(int pages) { page_limit_.store(pages, std::memory_order_relaxed); }
  int Pages();

 private:
  struct Impl;
  void Write(const StoreChange& change);
  void ReadCounts(StoredRun& run);
  void ReadMembers(StoredRun& run);
  void ReadEpisodes(StoredRun& run);

  std::unique_ptr<Impl> impl_;
  std::atomic<int> page_limit_{0};  // a lone value: relaxed
};

}  // namespace tetrion
