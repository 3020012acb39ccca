#include <algorithm>
#include <utility>

#include "lib/core/log.h"
#include "lib/frame/token.h"
#include "services/coordinator/claims.h"
#include "services/coordinator/control_agent.h"

// What each message does. A handler that changes the account pushes one change and answers after
// its ticket; without room in the store it stays silent, and the member asks again.
namespace tetrion::coordinator {
namespace {

using wire::DecodeStatus;

HeldTokens ToHeld(const wire::HeldRange& range) {
  return {range.first_id, range.attempt, Bits256::From(range.held)};
}

wire::GrantedRange ToWire(const LedgerRange& range, std::uint32_t max_steps) {
  return {range.first_id, wire::kRangeTokens, range.attempt, max_steps,
          range.done.None() ? wire::Bitmap{} : range.done.ToBitmap()};
}

}  // namespace

void ControlAgent::Handle(const wire::ControlServer::Received& received) {
  const wire::DecodeResult decoded = wire::Decode(received.bytes);
  if (decoded.status == DecodeStatus::kOk) {
    const std::int64_t start_ns = clock_.NowNs();
    sender_ = decoded.sender;
    if (BelongsHere(received.peer, decoded.message)) {
      std::visit([&](const auto& m) { On(received.peer, m); }, decoded.message);
    }
    metrics_.Handled(decoded.message.index(),
                     static_cast<double>(clock_.NowNs() - start_ns) * 1e-9);
    return;
  }
  server_.CountMalformed();
  LogOdd("dropped a message of " + std::to_string(received.bytes.size()) +
         " bytes: " + wire::Name(decoded.status));
  if (!wire::Answerable(decoded.status)) return;
  if (decoded.status == DecodeStatus::kWrongVersion) {
    Refuse(received.peer, wire::RefuseReason::kProtocolVersion,
           wire::WrongVersionText(decoded.have_version));
  } else {
    Refuse(received.peer, wire::RefuseReason::kMalformed,
           std::string("message refused: ") + wire::Name(decoded.status));
  }
}

bool ControlAgent::BelongsHere(const wire::PeerId& peer, const wire::Message& message) {
  const bool joins = std::holds_alternative<wire::Register>(message) && sender_.run_id == 0;
  if (sender_.process == 0 || sender_.process >> 63 != 0) {
    server_.CountMalformed();
    Refuse(peer, wire::RefuseReason::kMalformed, "the message names no process");
    return false;
  }
  if (joins || sender_.run_id == run_id_) return true;
  LogOdd("refused a message of a member of another run");
  Refuse(peer, wire::RefuseReason::kOtherRun,
         "this is the coordinator of run " + config_.run +
             "; the sender belongs to another run and has to be started again to join this one");
  return false;
}

template <typename Other>
void ControlAgent::On(const wire::PeerId& peer, const Other&) {
  server_.CountMalformed();
  Refuse(peer, wire::RefuseReason::kMalformed, "only the coordinator sends this message");
}

Session* ControlAgent::Live(const wire::PeerId& peer, std::uint64_t number) {
  Session* session = book_.sessions.Find(number);
  if (session == nullptr) {
    metrics_.Fenced();
    // A member that was told forgets what it holds and numbers its messages from 1 again: the
    // session must not come back after a crash. Until its end is stored, the member asks in vain.
    if (ended_ticket_ <= store_.committed()) Send(peer, wire::Fenced{number});
    return nullptr;
  }
  if (session->process != sender_.process) {
    // Never an honest member: no answer, and nothing of the session changes.
    metrics_.Impostor();
    LogOdd("dropped a message for a session of " + session->name + " by another process");
    return nullptr;
  }
  NoteReturn(*session, /*is_new=*/false);
  session->peer = peer;
  book_.sessions.Renew(*session);
  return session;
}

bool ControlAgent::RefuseImpossible(std::uint64_t number, const std::string& impossible) {
  if (impossible.empty()) return false;
  LogOdd("session " + std::to_string(SessionTable::SequenceOf(number)) +
         " told the impossible: " + impossible);
  if (book_.CanStore()) EndRefused(number, wire::RefuseReason::kImpossible, impossible);
  return true;
}

void ControlAgent::On(const wire::PeerId& peer, const wire::GrantRequest& m) {
  Session* session = Live(peer, m.session);
  if (session == nullptr) return;
  if (draining()) {
    Send(peer, AckFor(*session));
    return;
  }
  if (session->role != wire::Role::kActor || !book_.CanStore()) return;
  const std::uint64_t last = book_.ledger.last_request(m.session);
  if (m.request < last) return;  // answered long ago
  if (RefuseImpossible(m.session, ImpossibleRequest(m.request, last))) return;
  std::uint32_t ranges = m.ranges;
  if (m.request != last) {
    const std::uint64_t most =
        MaxTokensHeld(session->workers, static_cast<std::uint64_t>(config_.run_config.lanes));
    const std::uint64_t held = book_.ledger.outstanding(m.session);
    const std::uint64_t room = held < most ? (most - held) / wire::kRangeTokens : 0;
    ranges = static_cast<std::uint32_t>(std::min<std::uint64_t>(ranges, room));
    if (ranges == 0) return;  // it has more than it can need: it asks again
  }
  wire::Grant grant{m.session, m.request, {}};
  for (const LedgerRange& range : book_.ledger.Grant(m.session, m.request, ranges)) {
    grant.ranges.push_back(ToWire(range, config_.run_config.max_steps));
    const std::uint64_t fresh = wire::kRangeTokens - range.done.Count();
    if (m.request != last) book_.processes.AddGranted(session->process, fresh);
  }
  session->last_request = m.request;
  // A repeated request waits for the same commit: its ticket lies before this one.
  ReplyAfter(book_.Persist({.sessions = {*session}}, Durability::kPromise), peer, m.session,
             std::move(grant));
}

void ControlAgent::On(const wire::PeerId& peer, const wire::ReportBatch& m) {
  const Session* session = Live(peer, m.session);
  if (session == nullptr || session->role != wire::Role::kActor || !book_.CanStore()) return;
  const RunConfig& run = config_.run_config;
  if (RefuseImpossible(m.session, ImpossibleIn(m, {.max_steps = run.max_steps,
                                                   .lanes = static_cast<std::uint32_t>(run.lanes),
                                                   .workers = session->workers,
                                                   .version_limit = book_.versions.limit()}))) {
    return;
  }
  wire::ReportAck ack{m.session, m.batch, 0, 0, 0};
  ReportRow row{m.session, sender_.run_id, m.batch, {}};
  row.episodes.reserve(m.episodes.size());
  for (const wire::EpisodeReport& episode : m.episodes) {
    switch (book_.ledger.Report(m.session, episode.token_id, episode.attempt)) {
      case ReportOutcome::kAccepted:
        row.episodes.push_back(episode);
        book_.state.AddEpisode(episode);
        metrics_.Episode(episode);
        break;
      case ReportOutcome::kDuplicate:
        ++ack.duplicates;
        break;
      case ReportOutcome::kRefused:
        ++ack.refused;
        break;
    }
  }
  ack.accepted = static_cast<std::uint32_t>(row.episodes.size());
  ReplyAfter(book_.Persist({.report = std::move(row)}, Durability::kReport), peer, m.session, ack);
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Abandon& m) {
  if (Live(peer, m.session) == nullptr || !book_.CanStore()) return;
  std::uint32_t freed = 0;
  for (const wire::HeldRange& range : m.tokens) {
    freed += book_.ledger.Abandon(m.session, ToHeld(range));
  }
  if (freed > 0 && m.reason != "drain") {
    LogOdd("session " + std::to_string(SessionTable::SequenceOf(m.session)) + " gave back " +
           std::to_string(freed) + " tokens: " + m.reason);
  }
  ReplyAfter(book_.Persist({}, Durability::kReport), peer, m.session,
             wire::AbandonAck{m.session, m.request});
}

wire::HeartbeatAck ControlAgent::AckFor(const Session& session) {
  const bool is_learner = session.role == wire::Role::kLearner;
  return {session.number,
          epoch_,
          draining(),
          is_learner ? book_.versions.Promised(store_.committed()) : 0,
          book_.state.episodes(),
          book_.state.window().MeanReturn(),
          book_.state.window().MeanLines()};
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Heartbeat& m) {
  Session* session = Live(peer, m.session);
  if (session == nullptr) return;
  if (session->role == wire::Role::kActor) {
    if (RefuseImpossible(m.session, book_.CountSteps(session->process, m.env_steps))) return;
  } else if (m.policy_version != 0 && m.policy_version >= book_.versions.limit()) {
    RefuseImpossible(m.session, "policy version " + std::to_string(m.policy_version) +
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
    if (m.region_held && !session->region_held && book_.CanStore()) {
      session->region_held = true;
      session->region_held_ns = clock_.NowNs();
      book_.Persist({.sessions = {*session}}, Durability::kReport);
    }
    if (m.rings_revision != book_.slots.revision()) rings_due_ = true;
  }
  Send(peer, AckFor(*session));
}

void ControlAgent::On(const wire::PeerId& peer, const wire::RingsReady& m) {
  const Session* session = Live(peer, m.session);
  if (session == nullptr || !book_.CanStore()) return;
  const std::uint64_t before = book_.slots.revision();
  for (const wire::RingInfo& ring : m.rings) {
    if (!book_.slots.Announce(m.session, ring)) {
      LogOdd("session " + std::to_string(SessionTable::SequenceOf(m.session)) +
             " announced the ring " + ring.path + " for slot " + std::to_string(ring.slot) +
             ", which is not its own");
    }
  }
  if (book_.slots.revision() != before) {
    slots_ticket_ = book_.Persist({}, Durability::kPromise);
  }
  ReplyAfter(slots_ticket_, peer, m.session, wire::RingsAck{m.session});
}

bool ControlAgent::IsLeaving(std::uint64_t number) {
  const Session* session = book_.sessions.Find(number);
  return session == nullptr || session->phase == wire::kPhaseDraining;
}

// The process behind the ring cannot go on: what it plays never reaches the learner.
void ControlAgent::RefuseUnusableRing(const SlotTable::Owner& owner, const wire::RingGone& m) {
  const std::string text =
      "the learner cannot use the ring " + m.path + ": " + m.reason + "; start the actor again";
  book_.processes.Ban(owner.process, text);
  EndRefused(owner.session, wire::RefuseReason::kRingUnusable, text);
}

void ControlAgent::On(const wire::PeerId& peer, const wire::RingGone& m) {
  const Session* learner = Live(peer, m.session);
  if (learner == nullptr || learner->role != wire::Role::kLearner || !book_.CanStore()) return;
  rings_due_ = true;
  const std::optional<SlotTable::Owner> owner = book_.slots.Gone(m.path);
  if (!owner.has_value()) return;
  slots_ticket_ = book_.Persist({}, Durability::kPromise);
  switch (m.end) {
    case wire::RingEnd::kClosed:
      log::info("ring {} is drained and gone", m.path);
      break;
    case wire::RingEnd::kOwnerDead:
      log::info("ring {} is drained and gone, its owner died", m.path);
      EndSession(owner->session, "its process died", /*returns=*/false);
      break;
    case wire::RingEnd::kUnattachable:
      // A learner may have removed a closed ring and died before it said so.
      if (IsLeaving(owner->session)) break;
      [[fallthrough]];
    case wire::RingEnd::kQuarantined:
      RefuseUnusableRing(*owner, m);
      break;
  }
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Goodbye& m) {
  Session* session = book_.sessions.Find(m.session);
  if (!book_.CanStore()) return;
  // Also without a session: a process that was fenced on its way out tells its last steps.
  const bool own = session == nullptr || session->process == sender_.process;
  if (!own) {
    static_cast<void>(Live(peer, m.session));  // drops and counts the impostor
    return;
  }
  const Session* present = book_.sessions.FindProcess(sender_.process);
  if (present == nullptr || present->role == wire::Role::kActor) {
    const std::string impossible = book_.CountSteps(sender_.process, m.env_steps);
    if (session != nullptr && RefuseImpossible(m.session, impossible)) return;
  }
  if (session != nullptr) {
    session->peer.clear();  // it gets the answer below, not Fenced
    EndSession(m.session, "goodbye", /*returns=*/false);
  } else if (present == nullptr && book_.processes.Find(sender_.process) != nullptr) {
    book_.processes.Forget(sender_.process);
    book_.Persist({}, Durability::kReport);
  }
  ReplyAfter(store_.pushed(), peer, 0, wire::GoodbyeAck{m.session});
}

}  // namespace tetrion::coordinator
