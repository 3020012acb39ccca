#include "services/coordinator/run_book.h"

#include <set>
#include <utility>

#include "lib/core/random.h"

namespace tetrion::coordinator {
namespace {

SlotTable MakeSlots(const StoredRun& stored, int max_workers) {
  std::vector<Slot> slots = stored.slots;
  slots.resize(static_cast<std::size_t>(max_workers));
  return SlotTable(std::move(slots));
}

}  // namespace

RunBook::RunBook(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
                 const Clock& clock)
    : ledger(stored.open_ranges, stored.counts.next_token, stored.counts.tokens),
      sessions(clock, config.session_lease_ms * kNanosPerMilli, stored.counts.next_session,
               RandomBits()),
      processes(clock, stored.counts.steps_forgotten),
      slots(MakeSlots(stored, config.run_config.max_workers)),
      state(clock, config.stop_after, config.stop_counts_whole_run, stored),
      versions(stored.counts.version_first, stored.counts.version_limit, config.heartbeat_ms),
      max_steps_(config.run_config.max_steps),
      store_(store) {
  std::set<std::uint64_t> present;
  for (const Session& session : stored.sessions) {
    sessions.Restore(session);
    ledger.RestoreRequest(session.number, session.last_request);
    present.insert(session.process);
  }
  for (const Process& process : stored.processes) {
    processes.Restore(process, !present.contains(process.number));
  }
}

std::uint64_t RunBook::Persist(StoreChange change, Durability durability) {
  change.ranges = ledger.TakeDirty();
  change.processes = processes.TakeDirty();
  change.forgotten = processes.TakeForgotten();
  change.slots = slots.TakeDirty();
  change.counts = {.tokens = ledger.counts(),
                   .next_token = ledger.next_id(),
                   .next_session = sessions.next_sequence(),
                   .env_steps = state.env_steps(),
                   .steps_forgotten = processes.steps_forgotten(),
                   .version_first = versions.first(),
                   .version_limit = versions.limit(),
                   .return_best = state.return_best(),
                   .served_s = state.ServedSeconds()};
  steps_due_ = false;
  return store_.Push(std::move(change), durability);
}

std::uint64_t RunBook::MemoryBytes() const {
  // A session has a connection: ZeroMQ's queues to and from it end at two blocks of 16 KiB each.
  constexpr std::uint64_t kRangeBytes = 512, kSessionBytes = 96 * 1024, kProcessBytes = 512;
  return ledger.open_ranges() * kRangeBytes + sessions.sessions().size() * kSessionBytes +
         processes.size() * kProcessBytes;
}

Session& RunBook::Open(const Session& description, bool returns) {
  processes.Open(description.process, returns);
  if (description.role == wire::Role::kLearner) versions.Begin();
  return sessions.Open(description);
}

std::string RunBook::CountSteps(std::uint64_t process, std::uint64_t env_steps) {
  const Process* known = processes.Find(process);
  if (known == nullptr) return "";
  std::string impossible = ImpossibleSteps(env_steps, *known, max_steps_);
  if (!impossible.empty()) return impossible;
  const std::uint64_t fresh = processes.Tell(process, env_steps);
  state.AddSteps(fresh);
  steps_due_ = steps_due_ || fresh > 0;
  return "";
}

std::uint64_t RunBook::End(std::uint64_t number, bool returns) {
  const Session* session = sessions.Find(number);
  if (session == nullptr) return 0;
  const std::uint64_t process = session->process;
  if (session->role == wire::Role::kLearner) left_learner = session->stats;
  const std::uint64_t freed = ledger.EndSession(number);
  slots.EndSession(number);
  sessions.Close(number);
  if (returns) {
    processes.Leave(process);
  } else {
    processes.Forget(process);
  }
  Persist({.ended = {number}}, Durability::kPromise);
  return freed;
}

}  // namespace tetrion::coordinator
