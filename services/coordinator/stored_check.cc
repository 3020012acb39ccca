#include "services/coordinator/stored_check.h"

#include <set>

namespace tetrion::coordinator {
namespace {

std::string Two(const std::string& what, std::uint64_t first, const std::string& other,
                std::uint64_t second) {
  return what + " " + std::to_string(first) + ", " + other + " " + std::to_string(second);
}

std::string RangesContradiction(const StoredRun& run, std::uint64_t episodes) {
  const RunCounts& counts = run.counts;
  std::set<std::uint64_t> live;
  for (const Session& session : run.sessions) live.insert(session.number);
  for (const LedgerRange& range : run.open_ranges) {
    const std::string name = "range " + std::to_string(range.first_id);
    if (range.first_id % wire::kRangeTokens != 0) return name + " is off the grid";
    if (range.first_id >= counts.next_token) {
      return Two(name + " was never issued: the next token is", counts.next_token, "range",
                 range.first_id);
    }
    if (range.attempt == 0) return name + " has no attempt";
    if (range.done.All()) return name + " is all done and still listed";
    if (range.session != 0 && !live.contains(range.session)) {
      return name + " belongs to a session that has ended";
    }
  }
  if (episodes != counts.tokens.done) {
    return Two("episodes in the reports:", episodes, "tokens done", counts.tokens.done);
  }
  const Ledger ledger(run.open_ranges, counts.next_token, counts.tokens);
  if (!ledger.Consistent()) return "its counters of tokens differ from its ranges";
  return "";
}

std::string MembersContradiction(const StoredRun& run) {
  std::set<std::uint64_t> processes, members;
  std::uint64_t steps = run.counts.steps_forgotten;
  for (const Process& process : run.processes) {
    processes.insert(process.number);
    if (process.steps_base > process.env_steps) return "a process has fewer steps than its base";
    steps += process.env_steps - process.steps_base;
  }
  if (steps != run.counts.env_steps) {
    return Two("steps of the processes:", steps, "of the run", run.counts.env_steps);
  }
  int learners = 0;
  for (const Session& session : run.sessions) {
    const std::uint64_t sequence = SessionTable::SequenceOf(session.number);
    if (sequence == 0 || sequence >= run.counts.next_session) {
      return Two("session", sequence, "was never given: the next one is", run.counts.next_session);
    }
    if (!processes.contains(session.process)) return "a session's process is missing";
    if (!members.insert(session.process).second) return "two sessions have one process";
    if (session.role == wire::Role::kLearner) ++learners;
  }
  if (learners > 1) return "it has two learners";
  if (run.counts.version_first > run.counts.version_limit) return "its policy versions went back";
  return "";
}

}  // namespace

std::string Contradiction(const StoredRun& run, std::uint64_t episodes) {
  std::string text = RangesContradiction(run, episodes);
  if (text.empty()) text = MembersContradiction(run);
  return text;
}

}  // namespace tetrion::coordinator
