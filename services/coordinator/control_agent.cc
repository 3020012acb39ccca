#include "services/coordinator/control_agent.h"

#include <poll.h>

#include <ctime>
#include <utility>
#include <variant>

#include "services/coordinator/status.h"

namespace tetrion::coordinator {
namespace {

using wire::DecodeStatus;

// Each may push two changes; the store agent's reserve holds a cycle of them.
constexpr int kMessagesPerCycle = 256;
constexpr std::int64_t kStepsEveryNs = kNanosPerSecond;
constexpr std::int64_t kServedEveryNs = 10 * kNanosPerSecond;
constexpr std::int64_t kStatusEveryNs = 500 * kNanosPerMilli;

// One function of several arguments' types.
template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

ControlAgent::ControlAgent(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
                           ControlMetrics& metrics, const Clock& clock)
    : context_(config, stored, store, metrics, clock),
      book_(context_.book),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      config_(context_.config),
      leases_(context_),
      rings_(context_, leases_),
      registration_(context_, leases_, rings_),
      grants_(context_, leases_),
      attendance_(context_, leases_, rings_),
      drain_(context_) {
  metrics_.CountFrom(stored.counts.tokens);
  PublishStatus();
}

int ControlAgent::DoWork() {
  int work = 0;
  bool read_to_end = false;
  if (rebind_requested_.exchange(false, std::memory_order_acq_rel)) context_.server.Rebind();
  if (store_.Paused() || store_.HasRoom()) {
    if (context_.server.Poll(config_.poll_ms, store_.event_fd()).extra_fd) store_.DrainEvent();
    work += context_.SendCommitted();
    const int read = ReadSocket();
    read_to_end = read < kMessagesPerCycle;
    work += read;
  } else {
    // The store is behind: members wait in the socket's queue until it has caught up.
    pollfd event = {store_.event_fd(), POLLIN, 0};
    if (poll(&event, 1, config_.poll_ms) > 0) store_.DrainEvent();
    work += context_.SendCommitted();
  }
  if (read_to_end) leases_.JudgeLeases();
  Housekeeping();
  return work;
}

int ControlAgent::ReadSocket() {
  int read = 0;
  while (read < kMessagesPerCycle) {
    const auto received = context_.server.Receive();
    if (!received.has_value()) break;
    Handle(*received);
    ++read;
  }
  return read;
}

void ControlAgent::Handle(const wire::ControlServer::Received& received) {
  wire::DecodeResult decoded = wire::Decode(received.bytes);
  if (decoded.status == DecodeStatus::kOk) {
    const std::int64_t start_ns = clock_.NowNs();
    context_.sender = decoded.sender;
    const std::size_t kind = decoded.message.index();
    if (BelongsHere(received.peer, decoded.message)) {
      Dispatch(received.peer, std::move(decoded.message));
    }
    metrics_.Handled(kind, static_cast<double>(clock_.NowNs() - start_ns) * 1e-9);
    return;
  }
  context_.server.CountMalformed();
  context_.LogOdd("dropped a message of " + std::to_string(received.bytes.size()) +
                  " bytes: " + wire::Name(decoded.status));
  if (!wire::Answerable(decoded.status)) return;
  if (decoded.status == DecodeStatus::kWrongVersion) {
    context_.Refuse(received.peer, wire::RefuseReason::kProtocolVersion,
                    wire::WrongVersionText(decoded.have_version));
  } else {
    context_.Refuse(received.peer, wire::RefuseReason::kMalformed,
                    std::string("message refused: ") + wire::Name(decoded.status));
  }
}

void ControlAgent::Dispatch(const wire::PeerId& peer, wire::Message&& message) {
  std::visit(Overloaded{[&](const wire::Register& m) { registration_.On(peer, m); },
                        [&](const wire::GrantRequest& m) { grants_.On(peer, m); },
                        [&](wire::ReportBatch& m) { grants_.On(peer, std::move(m)); },
                        [&](const wire::Abandon& m) { grants_.On(peer, m); },
                        [&](const wire::RingsReady& m) { rings_.On(peer, m); },
                        [&](const wire::RingGone& m) { rings_.On(peer, m); },
                        [&](const wire::Heartbeat& m) { attendance_.On(peer, m); },
                        [&](const wire::Goodbye& m) { attendance_.On(peer, m); },
                        [&](const auto&) {
                          context_.server.CountMalformed();
                          context_.Refuse(peer, wire::RefuseReason::kMalformed,
                                          "only the coordinator sends this message");
                        }},
             message);
}

bool ControlAgent::BelongsHere(const wire::PeerId& peer, const wire::Message& message) {
  const bool joins = std::holds_alternative<wire::Register>(message) && context_.sender.run_id == 0;
  if (context_.sender.process == 0 || context_.sender.process >> 63 != 0) {
    context_.server.CountMalformed();
    context_.Refuse(peer, wire::RefuseReason::kMalformed, "the message names no process");
    return false;
  }
  if (joins || context_.sender.run_id == context_.run_id) return true;
  context_.LogOdd("refused a message of a member of another run");
  context_.Refuse(
      peer, wire::RefuseReason::kOtherRun,
      "this is the coordinator of run " + config_.run +
          "; the sender belongs to another run and has to be started again to join this one");
  return false;
}

void ControlAgent::Housekeeping() {
  const std::int64_t now_ns = clock_.NowNs();
  rings_.SendDue();
  context_.LogLeftOutWhenDue();
  // Time counts on where nobody plays.
  const bool time_due = config_.stop_counts_whole_run && now_ns - last_steps_ns_ >= kServedEveryNs;
  const bool steps_due = book_.steps_due() && now_ns - last_steps_ns_ >= kStepsEveryNs;
  if ((steps_due || time_due) && book_.CanStore()) {
    last_steps_ns_ = now_ns;
    book_.Persist({}, Durability::kReport);
  }
  if (!finished() && drain_.Step()) {
    PublishStatus();
    finished_.store(true, std::memory_order_release);
  }
  if (now_ns - last_status_ns_ >= kStatusEveryNs) PublishStatus();
}

void ControlAgent::OnClose() {
  if (book_.CanStore()) book_.Persist({}, Durability::kPromise);
  context_.LogLeftOut();
  PublishStatus();
}

void ControlAgent::PublishStatus() {
  last_status_ns_ = clock_.NowNs();
  book_.state.Sample();
  table_bytes_.store(book_.MemoryBytes(), std::memory_order_relaxed);
  const SessionTable& sessions = book_.sessions;
  const std::size_t actors = sessions.Count(wire::Role::kActor);
  metrics_.Update({.tokens = book_.ledger.counts(),
                   .actors = actors,
                   .oldest_seconds = static_cast<double>(sessions.OldestSilenceNs()) * 1e-9,
                   .replies = context_.replies().size(),
                   .store_queued = store_.Queued(),
                   .store_paused = store_.Paused(),
                   .store_log_bytes = store_.log_bytes()},
                  book_.state.window(), context_.server.stats());
  metrics_.Update(context_.server.handshakes());
  const char* phase = finished() ? "finished" : "running";
  if (draining() && !finished()) phase = "draining";
  if (!draining() && store_.Paused()) phase = "store paused";
  if (!draining() && !store_.Paused() && actors == 0) phase = "waiting for actors";
  std::string status = StatusJson({.run = config_.run,
                                   .env = config_.run_config.env,
                                   .phase = phase,
                                   .unix_time = static_cast<std::uint64_t>(std::time(nullptr)),
                                   .epoch = context_.epoch,
                                   .state = book_.state,
                                   .sessions = sessions,
                                   .left_learner = book_.left_learner,
                                   .tokens = book_.ledger.counts()});
  {
    MutexLock lock(status_mu_);
    status_ = std::move(status);
  }
  if (context_.members_changed) PublishMembers();
}

void ControlAgent::PublishMembers() {
  context_.members_changed = false;
  std::vector<Member> members;
  for (const auto& [number, session] : book_.sessions.sessions()) {
    if (session.http_endpoint.empty()) continue;
    members.push_back(
        {session.name, session.http_endpoint, SessionTable::SequenceOf(number), session.role});
  }
  MutexLock lock(status_mu_);
  if (members == members_) return;
  members_ = std::move(members);
  members_revision_.fetch_add(1, std::memory_order_release);
}

std::string ControlAgent::Status() const {
  MutexLock lock(status_mu_);
  return status_;
}

std::vector<Member> ControlAgent::Members() const {
  MutexLock lock(status_mu_);
  return members_;
}

}  // namespace tetrion::coordinator
