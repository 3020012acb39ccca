#include "services/coordinator/control_agent.h"

#include <poll.h>

#include <ctime>
#include <utility>

#include "lib/core/log.h"
#include "services/coordinator/status.h"

namespace tetrion::coordinator {
namespace {

// Each may push two changes; the store agent's reserve holds a cycle of them.
constexpr int kMessagesPerCycle = 256;
constexpr std::int64_t kStallNs = kNanosPerSecond;
constexpr std::int64_t kReturnNs = 2 * kNanosPerSecond;
constexpr std::int64_t kMaxReturnNs = 60 * kNanosPerSecond;
constexpr std::int64_t kStepsEveryNs = kNanosPerSecond;
constexpr std::int64_t kStatusEveryNs = 500 * kNanosPerMilli;
constexpr std::int64_t kOddEveryNs = kNanosPerSecond;

}  // namespace

ControlAgent::ControlAgent(const ControlConfig& config, const StoredRun& stored, StoreAgent& store,
                           ControlMetrics& metrics, const Clock& clock)
    : config_(config),
      config_text_(ToText(config.run_config)),
      epoch_(stored.epoch),
      run_id_(stored.run_id),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      server_(config.bind, stored.run_id),
      book_(config, stored, store, clock),
      start_ns_(clock.NowNs()) {
  PublishStatus();
}

int ControlAgent::DoWork() {
  int work = 0;
  bool read_to_end = false;
  if (rebind_requested_.exchange(false, std::memory_order_acq_rel)) server_.Rebind();
  if (store_.Paused() || store_.HasRoom()) {
    if (server_.Poll(config_.poll_ms, store_.event_fd()).extra_fd) store_.DrainEvent();
    work += SendCommitted();
    const int read = ReadSocket();
    read_to_end = read < kMessagesPerCycle;
    work += read;
  } else {
    // The store is behind: members wait in the socket's queue until it has caught up.
    pollfd event = {store_.event_fd(), POLLIN, 0};
    if (poll(&event, 1, config_.poll_ms) > 0) store_.DrainEvent();
    work += SendCommitted();
  }
  if (read_to_end) JudgeLeases();
  Housekeeping();
  return work;
}

int ControlAgent::SendCommitted() {
  return replies_.TakeCommitted(store_.committed(), [this](const ReplyQueue::Reply& reply) {
    if (reply.session == 0 || book_.sessions.Find(reply.session) != nullptr) {
      Send(reply.peer, reply.message);
    }
  });
}

int ControlAgent::ReadSocket() {
  int read = 0;
  while (read < kMessagesPerCycle) {
    const auto received = server_.Receive();
    if (!received.has_value()) break;
    Handle(*received);
    ++read;
  }
  return read;
}

void ControlAgent::JudgeLeases() {
  const std::int64_t now_ns = clock_.NowNs();
  const bool stalled = last_judged_ns_ == 0 || now_ns - last_judged_ns_ > kStallNs;
  last_judged_ns_ = now_ns;
  if (stalled) {
    book_.sessions.GiveFullLeases();
    return;
  }
  // After a restart members come back through the kernel's queues, thousands in some seconds: while
  // they do, those who were not heard yet may be among those who wait.
  const bool returning = last_return_ns_ != 0 && now_ns - last_return_ns_ < kReturnNs &&
                         now_ns - start_ns_ < kMaxReturnNs;
  for (const std::uint64_t number : book_.sessions.Expired()) {
    if (!store_.HasRoom()) break;  // ending a session writes
    if (returning && book_.sessions.Find(number)->peer.empty()) continue;
    EndSession(number, "its lease is over", /*returns=*/true);
  }
}

void ControlAgent::NoteReturn(const Session& session, bool is_new) {
  if (!is_new && session.peer.empty()) last_return_ns_ = clock_.NowNs();
}

void ControlAgent::EndSession(std::uint64_t number, const std::string& why, bool returns) {
  const Session* session = book_.sessions.Find(number);
  if (session == nullptr) return;
  const std::string name = session->name;
  const wire::PeerId peer = session->peer;
  const std::uint64_t freed = book_.End(number, returns);
  slots_ticket_ = ended_ticket_ = store_.pushed();
  members_changed_ = true;
  log::info("session {} of {} ended: {}; {} tokens are free again",
            SessionTable::SequenceOf(number), name, why, freed);
  if (!peer.empty()) ReplyAfter(ended_ticket_, peer, 0, wire::Fenced{number});
}

void ControlAgent::EndRefused(std::uint64_t number, wire::RefuseReason reason,
                              const std::string& text) {
  Session* session = book_.sessions.Find(number);
  if (session == nullptr) return;
  if (!session->peer.empty()) Refuse(session->peer, reason, text);
  session->peer.clear();  // told already
  EndSession(number, text, /*returns=*/true);
}

void ControlAgent::ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                              wire::Message message) {
  if (ticket <= store_.committed()) {
    Send(peer, message);
  } else if (!replies_.Add({ticket, peer, session, std::move(message)})) {
    LogOdd("more replies wait for the store than are kept; their members ask again");
  }
}

void ControlAgent::Send(const wire::PeerId& peer, const wire::Message& message) {
  // A peer that is gone or does not read asks again: every request is repeated until answered.
  static_cast<void>(server_.Send(peer, message));
}

void ControlAgent::Refuse(const wire::PeerId& peer, wire::RefuseReason reason,
                          const std::string& text) {
  metrics_.Refused(reason);
  Send(peer, wire::Refused{reason, text});
}

void ControlAgent::LogOdd(const std::string& what) {
  if (last_odd_log_ns_ != 0 && clock_.NowNs() - last_odd_log_ns_ < kOddEveryNs) return;
  last_odd_log_ns_ = clock_.NowNs();
  log::warn("{}", what);
}

// The newest list, once it is committed; a list is never queued, so that a slow store gathers none.
void ControlAgent::SendRings() {
  if (slots_ticket_ > store_.committed()) return;
  rings_due_ = false;
  rings_told_ = book_.slots.revision();
  const Session* learner = book_.sessions.Learner();
  if (learner == nullptr || learner->peer.empty()) return;
  Send(learner->peer, wire::RingList{learner->number, book_.slots.revision(), book_.slots.Rings()});
}

void ControlAgent::Housekeeping() {
  const std::int64_t now_ns = clock_.NowNs();
  if (rings_due_ || rings_told_ != book_.slots.revision()) SendRings();
  if (now_ns - last_steps_ns_ >= kStepsEveryNs && book_.steps_due() && book_.CanStore()) {
    last_steps_ns_ = now_ns;
    book_.Persist({}, Durability::kReport);
  }
  DrainStep();
  if (now_ns - last_status_ns_ >= kStatusEveryNs) PublishStatus();
}

void ControlAgent::DrainStep() {
  if (!draining()) {
    const bool asked = drain_requested_.load(std::memory_order_acquire);
    if (!asked && !book_.state.StopReached()) return;
    log::info("draining: {}", asked ? "asked to stop" : "--stop-after is reached");
    draining_.store(true, std::memory_order_release);
    drain_deadline_ns_ = clock_.NowNs() + config_.drain_timeout_ms * kNanosPerMilli;
    for (const auto& [number, session] : book_.sessions.sessions()) {
      if (!session.peer.empty()) Send(session.peer, AckFor(session));
    }
  }
  if (finished()) return;
  // Rings left without any session stay so: their learner is gone, and none is let in any more. The
  // learner of the resumed run will drain them.
  const bool gone = book_.sessions.sessions().empty();
  const bool late = clock_.NowNs() >= drain_deadline_ns_;
  if (gone && replies_.empty() && store_.committed() == store_.pushed()) {
    log::info("drained; {} rings wait for the next learner", book_.slots.Rings().size());
  } else if (late) {
    log::warn("drain time-out: {} sessions and {} rings are left", book_.sessions.sessions().size(),
              book_.slots.Rings().size());
  } else {
    return;
  }
  PublishStatus();
  finished_.store(true, std::memory_order_release);
}

void ControlAgent::OnClose() {
  if (book_.CanStore()) book_.Persist({}, Durability::kPromise);
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
                   .replies = replies_.size(),
                   .store_queued = store_.Queued(),
                   .store_paused = store_.Paused()},
                  book_.state.window(), server_.stats());
  const char* phase = finished() ? "finished" : "running";
  if (draining() && !finished()) phase = "draining";
  if (!draining() && store_.Paused()) phase = "store paused";
  if (!draining() && !store_.Paused() && actors == 0) phase = "waiting for actors";
  std::string status = StatusJson({.run = config_.run,
                                   .env = config_.run_config.env,
                                   .phase = phase,
                                   .unix_time = static_cast<std::uint64_t>(std::time(nullptr)),
                                   .epoch = epoch_,
                                   .state = book_.state,
                                   .sessions = sessions,
                                   .tokens = book_.ledger.counts()});
  {
    MutexLock lock(status_mu_);
    status_ = std::move(status);
  }
  if (members_changed_) PublishMembers();
}

void ControlAgent::PublishMembers() {
  members_changed_ = false;
  std::vector<Member> members;
  for (const auto& [number, session] : book_.sessions.sessions()) {
    if (session.http_endpoint.empty()) continue;
    members.push_back({session.name, session.http_endpoint, SessionTable::SequenceOf(number)});
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
