#include "services/coordinator/membership.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/error.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kSilentHeartbeats = 2;

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

// What the member was given that the run has otherwise. Empty: nothing.
std::string Mismatch(const wire::Register& m, const ControlConfig& config) {
  std::vector<Setting> given;
  for (const wire::GivenSetting& setting : m.given) given.push_back({setting.key, setting.value});
  std::vector<std::string> contradictions;
  try {
    contradictions = Contradictions(given, config.run_config);
  } catch (const Error& error) {
    contradictions.push_back(error.what());
  }
  if (!m.shm_dir.empty() && m.shm_dir != config.shm_dir) {
    contradictions.push_back("shm_dir: here " + m.shm_dir + ", the run has " + config.shm_dir);
  }
  if (contradictions.empty()) return "";
  return m.name + " contradicts the run's configuration: " + Joined(contradictions) +
         "; leave these options out, or start another run";
}

std::string WhatOfSlots(Registration::Awaited awaited, const std::string& name) {
  if (awaited == Registration::Awaited::kTheGone) return "those of workers that are gone come free";
  const std::string less = " with fewer --workers, or start a run with more --max-workers";
  if (awaited == Registration::Awaited::kNothing) return "start it" + less;
  return "it waits until the other " + name + " is gone; if both shall play, start this one" + less;
}

std::string NoSlotText(const wire::Register& m, std::size_t slots, std::size_t in_use,
                       Registration::Awaited awaited) {
  return "no replay slot for " + m.name + ": it has " + std::to_string(m.workers) +
         " workers, the run has " + std::to_string(slots) + " slots (--max-workers) and " +
         std::to_string(in_use) + " are in use; " + WhatOfSlots(awaited, m.name);
}

}  // namespace

Registration::Registration(ControlContext& context, Leases& leases, Rings& rings)
    : ControlPart(context),
      leases_(leases),
      rings_(rings),
      config_text_(ToText(config_.run_config)) {}

// A learner holds its region's flock for life: once its session has held the lock, a free lock
// means that its process is dead. A learner that is just starting, or is on another host, has its
// lease: on another host its lock is not seen here, whatever a learner before it has left.
bool Registration::LearnerIsTaken(const wire::PeerId& peer) {
  const Session* learner = book_.sessions.Learner();
  if (learner == nullptr) return false;
  if (learner->region_held && context_.region_free_ns() > learner->region_held_ns) {
    leases_.EndSession(learner->number, "its process died", SessionEnd::kDied);
    return false;
  }
  const std::int64_t left_ns = std::max<std::int64_t>(0, learner->expires_ns - clock_.NowNs());
  context_.Refuse(peer, wire::RefuseReason::kLearnerTaken,
                  "run " + config_.run + " has a learner (" + learner->name +
                      "); its lease ends in at most " + std::to_string(left_ns / kNanosPerMilli) +
                      " ms unless it is alive");
  return true;
}

// False after a refusal.
bool Registration::Welcome(const wire::PeerId& peer, const wire::Register& m,
                           const Session* present) {
  const std::string ban = book_.processes.BanOf(context_.sender.process);
  if (!ban.empty()) {
    context_.Refuse(peer, wire::RefuseReason::kRingUnusable, ban);
    return false;
  }
  const std::string mismatch = Mismatch(m, config_);
  if (!mismatch.empty()) {
    context_.Refuse(peer, wire::RefuseReason::kConfigMismatch, mismatch);
    return false;
  }
  if (present != nullptr && present->role != m.role) {
    context_.Refuse(peer, wire::RefuseReason::kImpossible, "a process cannot be actor and learner");
    return false;
  }
  if (present != nullptr) return true;
  if (context_.draining()) {
    context_.Refuse(
        peer, wire::RefuseReason::kDraining,
        "run " + config_.run + " is ending; resume it with ./tetrion up --resume " + config_.run);
    return false;
  }
  if (book_.sessions.sessions().size() >= config_.max_sessions) {
    context_.Refuse(peer, wire::RefuseReason::kNoSlot,
                    "run " + config_.run + " has " + std::to_string(config_.max_sessions) +
                        " members, which is the most");
    return false;
  }
  if (!book_.processes.MayOpen(context_.sender.process)) {
    context_.Refuse(
        peer, wire::RefuseReason::kTooManySessions,
        m.name + " has had " + std::to_string(ProcessTable::kMaxSessions) +
            " sessions within an hour; see in its log why it was fenced, then start it again");
    return false;
  }
  return m.role != wire::Role::kLearner || !LearnerIsTaken(peer);
}

wire::Registered Registration::Describe(const Session& session,
                                        const std::vector<std::int32_t>& slots) const {
  wire::Registered registered;
  registered.session = session.number;
  registered.epoch = context_.epoch;
  registered.run = config_.run;
  registered.run_id = context_.run_id;
  registered.run_folder = config_.run_folder;
  registered.run_config = config_text_;
  registered.shm_dir = config_.shm_dir;
  registered.slots = slots;
  registered.heartbeat_ms = config_.heartbeat_ms;
  registered.session_lease_ms = config_.session_lease_ms;
  if (session.role == wire::Role::kLearner) {
    registered.version_first = book_.versions.first();
    registered.version_limit = book_.versions.limit();
  } else if (const Session* learner = book_.sessions.Learner(); learner != nullptr) {
    registered.rows_endpoint = learner->rows_endpoint;
    registered.rows_key = learner->rows_key;
  }
  return registered;
}

Session& Registration::OpenSession(const wire::Register& m) {
  Session description;
  description.role = m.role;
  description.process = context_.sender.process;
  description.registration = m.registration;
  description.phase = "registered";
  return book_.Open(description, /*returns=*/m.previous_session != 0);
}

// Members repeat a registration until it is answered, thousands of them together after a restart:
// one that says nothing new costs no change of the store. True when this is one.
bool Registration::IsRepeated(const wire::PeerId& peer, const wire::Register& m,
                              const Session& session) {
  if (session.peer != peer || session.registered_ticket == 0 || session.name != m.name ||
      session.http_endpoint != m.http_endpoint || session.workers != m.workers ||
      session.rows_endpoint != m.rows_endpoint || session.rows_key != m.rows_key) {
    return false;
  }
  if (session.registered_ticket > store_.committed()) return true;  // its answer is on its way
  const std::size_t in_use = book_.slots.InUse();
  const std::uint64_t revision = book_.slots.revision();
  const auto slots =
      book_.slots.Assign({session.number, session.process}, session.workers, m.rings);
  if (!slots.has_value()) return false;
  // Slots that it was given just now are to be stored before they are told.
  if (book_.slots.InUse() != in_use || book_.slots.revision() != revision) return false;
  context_.ReplyAfter(session.registered_ticket, peer, session.number, Describe(session, *slots));
  return true;
}

// Whether a new process with so many workers finds slots once those of the dead are free: of rings
// without a session, which the learner empties, of members of an earlier start that have not come
// back, and of sessions that nobody may stand behind any more: silent ones, and those of the same
// name, which this process replaces unless it only has the same name.
Registration::Awaited Registration::SlotsAwaited(const wire::Register& m,
                                                 std::uint32_t workers) const {
  const std::int64_t silent_since_ns =
      clock_.NowNs() - kSilentHeartbeats * config_.heartbeat_ms * kNanosPerMilli;
  std::size_t slots = book_.slots.size() - book_.slots.InUse(), of_its_name = 0;
  for (const Slot& slot : book_.slots.slots()) {
    if (slot.state != Slot::State::kAssigned && slot.state != Slot::State::kRing) continue;
    const Session* owner = book_.sessions.Find(slot.session);
    if (owner == nullptr || owner->peer.empty() || owner->heard_ns <= silent_since_ns) {
      ++slots;
    } else if (owner->name == m.name) {
      ++of_its_name;
    }
  }
  if (slots >= workers) return Awaited::kTheGone;
  return slots + of_its_name >= workers ? Awaited::kItsName : Awaited::kNothing;
}

void Registration::RefuseWithoutSlots(const wire::PeerId& peer, const wire::Register& m,
                                      std::uint32_t workers) {
  const Awaited awaited = SlotsAwaited(m, workers);
  auto reason = awaited == Awaited::kNothing ? wire::RefuseReason::kNoSlot
                                             : wire::RefuseReason::kSlotsAwaited;
  if (workers > book_.slots.size()) reason = wire::RefuseReason::kConfigMismatch;  // for ever
  context_.Refuse(peer, reason, NoSlotText(m, book_.slots.size(), book_.slots.InUse(), awaited));
}

// The session a registration is about is that of its process, so a registration that is said again
// because its answer was lost finds the one it made.
void Registration::On(const wire::PeerId& peer, const wire::Register& m) {
  Session* session = book_.sessions.FindProcess(context_.sender.process);
  // Sent on a connection that its process has given up: what it lists as held was granted anew
  // since, perhaps.
  if (session != nullptr && m.registration < session->registration) return;
  // The process is there, whatever the store does: it may say nothing else for the whole pause.
  if (session != nullptr) book_.sessions.Renew(*session);
  if (store_.Paused()) {
    const std::string reason = store_.PauseReason();  // empty: it has just been written again
    context_.Refuse(peer, wire::RefuseReason::kStorePaused,
                    "the store cannot be written" + (reason.empty() ? "" : ": " + reason));
    return;
  }
  if (!book_.CanStore()) return;
  if (!Welcome(peer, m, session)) return;
  if (session != nullptr) session->registration = m.registration;
  if (session != nullptr && IsRepeated(peer, m, *session)) return;
  const bool is_new = session == nullptr;
  const std::uint64_t number = is_new ? book_.sessions.next_number() : session->number;
  const std::uint32_t workers = m.role == wire::Role::kActor ? m.workers : 0;
  const auto slots = book_.slots.Assign({number, context_.sender.process}, workers, m.rings);
  if (!slots.has_value()) {
    RefuseWithoutSlots(peer, m, workers);
    return;
  }
  std::uint64_t freed = 0;
  if (is_new) {
    session = &OpenSession(m);
  } else if (m.previous_session == number) {
    std::vector<ClaimedTokens> held;
    for (const wire::HeldRange& range : m.held) held.push_back(ClaimedTokens::From(range));
    freed = book_.ledger.ReRegister(number, held, m.held_below);
    session->last_request = book_.ledger.last_request(number);
  }
  leases_.NoteReturn(*session, is_new);
  session->peer = peer;
  session->name = m.name;
  session->workers = workers;
  session->http_endpoint = m.http_endpoint;
  session->rows_endpoint = m.rows_endpoint;
  session->rows_key = m.rows_key;
  book_.sessions.Renew(*session);
  context_.members_changed = true;
  const std::uint64_t ticket = book_.Persist({.sessions = {*session}}, Durability::kPromise);
  session->registered_ticket = ticket;
  // A member without slots keeps no list of rings waiting.
  if (session->MayHaveSlots()) context_.slots_ticket = ticket;
  if (m.role == wire::Role::kLearner) {
    book_.versions.PersistedBy(ticket);
    rings_.ListIsDue();
  }
  context_.LogSession(m.name + (is_new ? " registered" : " registered again") + " as session " +
                      std::to_string(SessionTable::SequenceOf(number)) +
                      (freed > 0 ? ", " + std::to_string(freed) + " tokens are free again" : ""));
  context_.ReplyAfter(ticket, peer, number, Describe(*session, *slots));
}

void Attendance::On(const wire::PeerId& peer, const wire::Heartbeat& m) {
  Session* session = leases_.Live(peer, m.session);
  if (session == nullptr) return;
  if (session->role == wire::Role::kActor) {
    if (leases_.RefuseImpossible(m.session, book_.CountSteps(session->process, m.env_steps)))
      return;
  } else if (m.policy_version != 0 && m.policy_version >= book_.versions.limit()) {
    leases_.RefuseImpossible(m.session, "policy version " + std::to_string(m.policy_version) +
                                            ", reserved are those below " +
                                            std::to_string(book_.versions.limit()));
    return;
  }
  session->phase = m.phase;
  session->stats = m.stats;
  if (session->role == wire::Role::kLearner) {
    if (book_.versions.NeedsMore(m.policy_version) && book_.CanStore() &&
        book_.versions.Extend(store_.committed())) {
      book_.versions.PersistedBy(book_.Persist({}, Durability::kPromise));
    }
    const bool seen = m.region_held && context_.region_held_by(m.region_owner);
    if (seen && !session->region_held && book_.CanStore()) {
      session->region_held = true;
      session->region_held_ns = clock_.NowNs();
      book_.Persist({.sessions = {*session}}, Durability::kReport);
    }
    if (m.rings_revision != book_.slots.revision()) rings_.ListIsDue();
  }
  context_.Send(peer, context_.AckFor(*session));
}

void Attendance::On(const wire::PeerId& peer, const wire::Goodbye& m) {
  Session* session = book_.sessions.Find(m.session);
  if (!book_.CanStore()) return;
  // Also without a session: a process that was fenced on its way out tells its last steps.
  const bool own = session == nullptr || session->process == context_.sender.process;
  if (!own) {
    static_cast<void>(leases_.Live(peer, m.session));  // drops and counts the impostor
    return;
  }
  const Session* present = book_.sessions.FindProcess(context_.sender.process);
  if (present == nullptr || present->role == wire::Role::kActor) {
    const std::string impossible = book_.CountSteps(context_.sender.process, m.env_steps);
    if (session != nullptr && leases_.RefuseImpossible(m.session, impossible)) return;
  }
  // A goodbye is its process's last word. Fenced, it may have asked for a session whose answer it
  // did not wait for.
  if (session == nullptr && present != nullptr) session = book_.sessions.Find(present->number);
  if (session != nullptr) {
    session->peer.clear();  // it gets the answer below, not Fenced
    leases_.EndSession(session->number, "goodbye", SessionEnd::kGoodbye);
  } else if (book_.processes.Find(context_.sender.process) != nullptr) {
    book_.processes.Forget(context_.sender.process);
    book_.Persist({}, Durability::kReport);
  }
  context_.ReplyAfter(store_.pushed(), peer, 0, wire::GoodbyeAck{m.session});
}

}  // namespace tetrion::coordinator
