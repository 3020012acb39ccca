#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/core/clock.h"

namespace tetrion::coordinator {

// What the account knows of one member process, whichever sessions it had.
struct Process {
  std::uint64_t number = 0;          // wire::Identity::process
  std::uint64_t env_steps = 0;       // newest count it told, since it started
  std::uint64_t steps_base = 0;      // part of env_steps that is not counted here
  std::uint64_t tokens_granted = 0;  // ever, each attempt of a token once
  bool base_known = true;            // false until a process that came back unknown tells a count
};

// Every process that has a session, and those that lost theirs and may come back. Steps are counted
// per process, so that a process which is fenced and registers anew is counted on, not again.
// Invariant: counted steps of the run = steps_forgotten() + sum of (env_steps - steps_base).
// Bounded: of the processes without a session the newest kMaxGone are kept. One thread.
class ProcessTable {
 public:
  static constexpr std::size_t kMaxGone = 65'536;
  // Sessions that one process may open within kSessionsWindowNs. A healthy one is fenced when its
  // machine sleeps; more often than this it only keeps others from their work.
  static constexpr int kMaxSessions = 64;
  static constexpr std::int64_t kSessionsWindowNs = 3600 * kNanosPerSecond;

  ProcessTable(const Clock& clock, std::uint64_t steps_forgotten)
      : clock_(clock), steps_forgotten_(steps_forgotten) {}

  // From the store; `gone` when none of the stored sessions is its.
  void Restore(const Process& process, bool gone);
  // False while the process has opened as many sessions as it may.
  bool MayOpen(std::uint64_t number) const;
  // The process opens a session. `returns`: it had one before; if it is not known (any more) its
  // steps count from the number that it tells first.
  void Open(std::uint64_t number, bool returns);
  // Its session was fenced; it may come back.
  void Leave(std::uint64_t number);
  // It has ended, or said goodbye. Its steps stay counted.
  void Forget(std::uint64_t number);
  // Never to be let in again, and why. Kept in memory only: a restarted coordinator finds out anew.
  void Ban(std::uint64_t number, const std::string& why);
  // Empty: not banned.
  std::string BanOf(std::uint64_t number) const;

  // Takes the process's own count of its steps. Returns how many of them are new: 0 for a late or
  // repeated message and for a process that is not known.
  std::uint64_t Tell(std::uint64_t number, std::uint64_t env_steps);
  void AddGranted(std::uint64_t number, std::uint64_t tokens);
  // nullptr: not known.
  const Process* Find(std::uint64_t number) const;
  std::size_t size() const { return entries_.size(); }
  std::uint64_t steps_forgotten() const { return steps_forgotten_; }

  // Processes changed, and forgotten, since the last call: for the store.
  std::vector<Process> TakeDirty();
  std::vector<std::uint64_t> TakeForgotten();

 private:
  struct Entry {
    Process process;
    bool dirty = false;
    bool gone = false;
    std::list<std::uint64_t>::iterator gone_at;  // with gone
    int sessions = 0;                            // opened since window_start_ns
    std::int64_t window_start_ns = 0;
    std::string ban;
  };
  void Touch(Entry& entry);
  void Return(Entry& entry);

  const Clock& clock_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::list<std::uint64_t> gone_;  // oldest first
  std::uint64_t steps_forgotten_;
  std::vector<std::uint64_t> dirty_, forgotten_;
};

// A process has taken at most max_steps steps for each token it was ever granted: what is
// impossible, as a clause with both numbers, or an empty text. Pure.
std::string ImpossibleSteps(std::uint64_t env_steps, const Process& process,
                            std::uint32_t max_steps);

}  // namespace tetrion::coordinator
