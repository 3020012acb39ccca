#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/run/run_config.h"
#include "lib/wire/security.h"
#include "services/coordinator/ledger.h"
#include "services/coordinator/process_table.h"
#include "services/coordinator/run_state.h"
#include "services/coordinator/session_table.h"
#include "services/coordinator/slot_table.h"
#include "services/coordinator/store_agent.h"

namespace tetrion::coordinator {

// What the control agent is told.
struct ControlConfig {
  std::string bind = "tcp://127.0.0.1:0";
  std::string run;
  std::string run_folder;  // absolute
  std::string shm_dir;
  RunConfig run_config;  // resolved
  std::uint32_t heartbeat_ms = 1000;
  std::uint32_t session_lease_ms = 10000;
  std::uint32_t drain_timeout_ms = 20000;
  StopAfter stop_after;
  bool stop_counts_whole_run = false;  // its time is the run's so far, not this start's
  wire::ServerSecurity security;       // of the control channel
  std::size_t max_sessions = 32'768;   // members at once; each has a connection and queues
  int session_lines = 2000;            // of the log in ten seconds: hundreds that come back and go
  // Longest wait of a cycle: far below half a lease, which is a stall.
  int poll_ms = static_cast<int>(std::clamp(session_lease_ms / 8, 1U, 50U));
};

// The tables of one run that belong together, and the only way from them to the store. A change of
// several tables reaches the store in one step (Persist), so that the file always holds a state
// that was true at one moment. Control agent only.
class RunBook {
 public:
  // `stored` is what Store::Load gave; `store` outlives the book.
  RunBook(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
          const Clock& clock);

  // Tables.
  Ledger ledger;
  SessionTable sessions;
  ProcessTable processes;
  SlotTable slots;
  RunState state;
  VersionBlocks versions;
  std::vector<wire::Stat> left_learner;  // figures of the learner whose session ended last

  // What the tables may take of this process's memory: an estimate from above, in bytes.
  std::uint64_t MemoryBytes() const;
  // Whether Persist may be called now.
  bool CanStore() const { return !store_.Paused() && store_.HasRoom(); }
  // Adds the counts and everything that changed in the tables, and pushes. Returns the ticket.
  std::uint64_t Persist(StoreChange change, Durability durability);
  // Steps were told that no Persist has taken along yet.
  bool steps_due() const { return steps_due_; }

  // A session for a process that has none and may open one. `returns`: it had one before.
  Session& Open(const Session& description, bool returns);
  // Takes a process's own count of its steps; what is impossible as a clause, else empty.
  std::string CountSteps(std::uint64_t process, std::uint64_t env_steps);
  // The session's tokens and unused slots become free, and it is fenced. `returns`: its process may
  // come back and is remembered. Persists; returns how many tokens became free.
  std::uint64_t End(std::uint64_t number, bool returns);

 private:
  const std::uint32_t max_steps_;
  StoreAgent& store_;
  bool steps_due_ = false;
};

}  // namespace tetrion::coordinator
