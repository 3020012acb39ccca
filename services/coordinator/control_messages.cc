#include <algorithm>
#include <utility>

#include "lib/core/log.h"
#include "services/coordinator/control_agent.h"

// What each message does. A handler that changes the account pushes one change and answers after
// its ticket; without room in the store it stays silent, and the member asks again.
namespace tetrion {
namespace {

using wire::DecodeStatus;

constexpr std::uint32_t kVersionBlock = 1000;
constexpr std::uint32_t kVersionReserve = 500;  // left of the block when the next is reserved
constexpr std::int64_t kLogEveryNs = kNanosPerSecond;  // a hostile peer must not fill the log

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
    std::visit([&](const auto& m) { On(received.peer, m); }, decoded.message);
    metrics_.Handled(decoded.message.index(),
                     static_cast<double>(clock_.NowNs() - start_ns) * 1e-9);
    return;
  }
  server_.CountMalformed();
  if (clock_.NowNs() - last_malformed_log_ns_ >= kLogEveryNs) {
    last_malformed_log_ns_ = clock_.NowNs();
    log::warn("dropped a message of {} bytes: {}", received.bytes.size(),
              wire::Name(decoded.status));
  }
  if (!wire::Answerable(decoded.status)) return;
  if (decoded.status == DecodeStatus::kWrongVersion) {
    Refuse(received.peer, wire::RefuseReason::kProtocolVersion,
           wire::WrongVersionText(decoded.have_version));
  } else {
    Refuse(received.peer, wire::RefuseReason::kMalformed,
           std::string("message refused: ") + wire::Name(decoded.status));
  }
}

template <typename Other>
void ControlAgent::On(const wire::PeerId& peer, const Other&) {
  server_.CountMalformed();
  Refuse(peer, wire::RefuseReason::kMalformed, "only the coordinator sends this message");
}

void ControlAgent::Refuse(const wire::PeerId& peer, wire::RefuseReason reason,
                          const std::string& text) {
  Send(peer, wire::Refused{reason, text});
}

Session* ControlAgent::Live(const wire::PeerId& peer, std::uint64_t number) {
  Session* session = sessions_.Find(number);
  if (session == nullptr) {
    metrics_.Fenced();
    Send(peer, wire::Fenced{number});
    return nullptr;
  }
  session->peer = peer;
  return session;
}

void ControlAgent::On(const wire::PeerId& peer, const wire::GrantRequest& m) {
  const Session* session = Live(peer, m.session);
  if (session == nullptr) return;
  if (draining()) {
    Send(peer, AckFor(*session));
    return;
  }
  if (session->role != wire::Role::kActor || !CanStore()) return;
  if (m.request < ledger_.last_request(m.session)) return;  // answered long ago
  wire::Grant grant{m.session, m.request, {}};
  for (const LedgerRange& range : ledger_.Grant(m.session, m.request, m.ranges)) {
    grant.ranges.push_back(ToWire(range, config_.run_config.max_steps));
  }
  // A repeated request waits for the same commit: its ticket lies before this one.
  ReplyAfter(Persist({}, true), peer, m.session, std::move(grant));
}

void ControlAgent::On(const wire::PeerId& peer, const wire::ReportBatch& m) {
  if (Live(peer, m.session) == nullptr || !CanStore()) return;
  wire::ReportAck ack{m.session, m.batch, 0, 0, 0};
  ReportRow row{m.session, m.batch, {}};
  row.episodes.reserve(m.episodes.size());
  for (const wire::EpisodeReport& episode : m.episodes) {
    switch (ledger_.Report(m.session, episode.token_id, episode.attempt)) {
      case ReportOutcome::kAccepted:
        row.episodes.push_back(episode);
        state_.AddEpisode(episode);
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
  ReplyAfter(Persist({.report = std::move(row)}, false), peer, m.session, ack);
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Abandon& m) {
  if (Live(peer, m.session) == nullptr || !CanStore()) return;
  std::uint32_t freed = 0;
  for (const wire::HeldRange& range : m.tokens) freed += ledger_.Abandon(m.session, ToHeld(range));
  if (freed > 0 && m.reason != "drain") {
    log::warn("session {} gave back {} tokens: {}", m.session, freed, m.reason);
  }
  ReplyAfter(Persist({}, false), peer, m.session, wire::AbandonAck{m.session, m.request});
}

void ControlAgent::CountSteps(Session& session, std::uint64_t env_steps) {
  if (session.role != wire::Role::kActor) return;
  if (!session.env_steps_known) {
    session.env_steps = env_steps;
    session.env_steps_known = true;
    steps_changed_.insert(session.number);
  }
  if (env_steps <= session.env_steps) return;  // late, or nothing new
  state_.AddSteps(env_steps - session.env_steps);
  session.env_steps = env_steps;
  steps_changed_.insert(session.number);
}

wire::HeartbeatAck ControlAgent::AckFor(const Session& session) const {
  return {session.number,
          epoch_,
          draining(),
          session.role == wire::Role::kLearner ? version_limit_ : 0,
          state_.episodes(),
          state_.window().MeanReturn(),
          state_.window().MeanLines()};
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Heartbeat& m) {
  Session* session = Live(peer, m.session);
  if (session == nullptr) return;
  sessions_.Renew(*session);
  session->phase = m.phase;
  session->stats = m.stats;
  CountSteps(*session, m.env_steps);
  if (session->role != wire::Role::kLearner) {
    Send(peer, AckFor(*session));
    return;
  }
  if (std::uint64_t{m.policy_version} + kVersionReserve > version_limit_ && CanStore()) {
    version_limit_ += kVersionBlock;
    version_ticket_ = Persist({}, true);
  }
  ReplyAfter(version_ticket_, peer, m.session, AckFor(*session));
  if (m.rings_revision != slots_.revision()) SendRings();
}

void ControlAgent::On(const wire::PeerId& peer, const wire::RingsReady& m) {
  const Session* session = Live(peer, m.session);
  if (session == nullptr || !CanStore()) return;
  const std::uint64_t before = slots_.revision();
  for (const wire::RingInfo& ring : m.rings) {
    if (!slots_.Announce(m.session, ring)) {
      log::warn("session {} announced the ring {} for slot {}, which is not its own", m.session,
                ring.path, ring.slot);
    }
  }
  if (slots_.revision() != before) slots_ticket_ = Persist({.slots = slots_.slots()}, true);
  ReplyAfter(slots_ticket_, peer, m.session, wire::RingsAck{m.session});
}

void ControlAgent::On(const wire::PeerId& peer, const wire::RingGone& m) {
  const Session* learner = Live(peer, m.session);
  if (learner == nullptr || learner->role != wire::Role::kLearner || !CanStore()) return;
  const auto owner = slots_.Gone(m.path);
  if (owner.has_value()) {
    log::info("ring {} is drained and gone{}", m.path, m.owner_dead ? ", its owner died" : "");
    slots_ticket_ = Persist({.slots = slots_.slots()}, true);
    if (m.owner_dead) EndSession(*owner, "its process died");
  }
  SendRings();
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Goodbye& m) {
  Session* session = sessions_.Find(m.session);
  if (session == nullptr) {  // said before, or fenced: either way nothing of it is left
    ReplyAfter(store_.pushed(), peer, 0, wire::GoodbyeAck{m.session});
    return;
  }
  if (!CanStore()) return;
  CountSteps(*session, m.env_steps);
  session->peer.clear();  // it gets the answer below, not Fenced
  EndSession(m.session, "goodbye");
  ReplyAfter(store_.pushed(), peer, 0, wire::GoodbyeAck{m.session});
}

Session& ControlAgent::OpenSession(const wire::PeerId& peer, const wire::Register& m) {
  Session description;
  description.role = m.role;
  description.name = m.name;
  description.nonce = m.nonce >> 1;  // ids travel through the store's signed columns
  description.http_endpoint = m.http_endpoint;
  description.peer = peer;
  description.phase = "registered";
  if (m.previous_session != 0) {
    description.env_steps_known = sessions_.EndedSteps(m.previous_session, &description.env_steps);
  }
  if (m.role == wire::Role::kLearner) {
    // Versions never go down: a new learner starts where the last block ends.
    version_first_ = version_limit_;
    version_limit_ += kVersionBlock;
  }
  return sessions_.Open(description);
}

}  // namespace tetrion
