#include "services/coordinator/control_agent.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "lib/core/log.h"
#include "services/coordinator/status.h"

namespace tetrion {
namespace {

constexpr int kPollMs = 50;
// Each may push two changes; the store agent's reserve holds a cycle of them.
constexpr int kMessagesPerCycle = 256;
constexpr std::int64_t kStallNs = kNanosPerSecond;
constexpr std::int64_t kStepsEveryNs = kNanosPerSecond;
constexpr std::int64_t kStatusEveryNs = 500 * kNanosPerMilli;
constexpr std::int64_t kLineEveryNs = 5 * kNanosPerSecond;

SlotTable MakeSlots(const StoredRun& stored, int max_workers) {
  const auto slots = static_cast<std::size_t>(max_workers);
  return stored.slots.size() == slots ? SlotTable(stored.slots) : SlotTable(slots);
}

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
      server_(config.bind),
      ledger_(stored.open_ranges, stored.counts.next_token, stored.counts.tokens),
      sessions_(clock, config.session_lease_ms * kNanosPerMilli, stored.counts.next_session),
      slots_(MakeSlots(stored, config.run_config.max_workers)),
      state_(clock, config.stop_after, stored),
      version_first_(stored.counts.version_first),
      version_limit_(stored.counts.version_limit) {
  for (const Session& session : stored.sessions) sessions_.Restore(session);
  PublishStatus();
}

int ControlAgent::DoWork() {
  const bool stalled = last_cycle_ns_ == 0 || clock_.NowNs() - last_cycle_ns_ > kStallNs;
  int work = 0;
  if (store_.Full() || store_.HasRoom()) {
    if (server_.Poll(kPollMs, store_.event_fd()).extra_fd) store_.DrainEvent();
    work += SendCommitted();
    work += ReadSocket();
  } else {
    // The store is behind: members wait in the socket's queue until it has caught up.
    pollfd event = {store_.event_fd(), POLLIN, 0};
    if (poll(&event, 1, kPollMs) > 0) store_.DrainEvent();
    work += SendCommitted();
  }
  KeepLeases(stalled);
  Housekeeping();
  last_cycle_ns_ = clock_.NowNs();
  return work;
}

int ControlAgent::SendCommitted() {
  const std::uint64_t committed = store_.committed();
  int sent = 0;
  for (; !pending_.empty() && pending_.front().ticket <= committed; ++sent) {
    const Pending reply = std::move(pending_.front());
    pending_.pop_front();
    if (reply.session == 0 || sessions_.Find(reply.session) != nullptr) {
      Send(reply.peer, reply.message);
    }
  }
  return sent;
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

void ControlAgent::KeepLeases(bool stalled) {
  if (stalled) {
    sessions_.GiveFullLeases();
    return;
  }
  if (store_.Queued() >= StoreAgent::kMaxQueued / 2) return;  // ending sessions writes
  for (const std::uint64_t number : sessions_.Expired()) {
    if (!store_.HasRoom()) break;
    EndSession(number, "its lease is over");
  }
}

void ControlAgent::EndSession(std::uint64_t number, const char* why) {
  const Session* session = sessions_.Find(number);
  if (session == nullptr) return;
  const std::string name = session->name;
  const wire::PeerId peer = session->peer;
  const std::uint64_t freed = ledger_.EndSession(number);
  slots_.EndSession(number);
  steps_changed_.erase(number);
  sessions_.Close(number);
  Persist({.ended = {number}, .slots = slots_.slots()}, false);
  log::info("session {} of {} ended: {}; {} tokens are free again", number, name, why, freed);
  if (!peer.empty()) Send(peer, wire::Fenced{number});
}

std::uint64_t ControlAgent::Persist(StoreChange change, bool urgent) {
  change.ranges = ledger_.TakeDirty();
  for (const std::uint64_t number : steps_changed_) {
    const Session* session = sessions_.Find(number);
    if (session != nullptr) change.sessions.push_back(*session);
  }
  steps_changed_.clear();
  change.counts = {.tokens = ledger_.counts(),
                   .next_token = ledger_.next_id(),
                   .next_session = sessions_.next_number(),
                   .env_steps = state_.env_steps(),
                   .version_first = version_first_,
                   .version_limit = version_limit_,
                   .return_best = state_.return_best()};
  return store_.Push(std::move(change), urgent);
}

void ControlAgent::ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer, std::uint64_t session,
                              wire::Message message) {
  if (ticket <= store_.committed()) {
    Send(peer, message);
    return;
  }
  // Tickets are pushed in order; an older one may wait for the newest before it.
  const std::uint64_t last = pending_.empty() ? 0 : pending_.back().ticket;
  pending_.push_back({std::max(ticket, last), peer, session, std::move(message)});
}

void ControlAgent::Send(const wire::PeerId& peer, const wire::Message& message) {
  // A peer that is gone or does not read asks again: every request is repeated until answered.
  static_cast<void>(server_.Send(peer, message));
}

void ControlAgent::SendRings() {
  const Session* learner = sessions_.Learner();
  rings_told_ = slots_.revision();
  if (learner == nullptr || learner->peer.empty()) return;
  ReplyAfter(slots_ticket_, learner->peer, learner->number,
             wire::RingList{learner->number, slots_.revision(), slots_.Rings()});
}

void ControlAgent::Housekeeping() {
  const std::int64_t now_ns = clock_.NowNs();
  if (rings_told_ != slots_.revision()) SendRings();
  if (now_ns - last_steps_ns_ >= kStepsEveryNs && !steps_changed_.empty() && CanStore()) {
    last_steps_ns_ = now_ns;
    Persist({}, false);
  }
  DrainStep();
  if (now_ns - last_status_ns_ >= kStatusEveryNs) PublishStatus();
  if (now_ns - last_line_ns_ >= kLineEveryNs) {
    last_line_ns_ = now_ns;
    AppendMetricsLine();
  }
}

void ControlAgent::DrainStep() {
  if (!draining()) {
    const bool asked = drain_requested_.load(std::memory_order_acquire);
    if (!asked && !state_.StopReached()) return;
    log::info("draining: {}", asked ? "asked to stop" : "--stop-after is reached");
    draining_.store(true, std::memory_order_release);
    drain_deadline_ns_ = clock_.NowNs() + config_.drain_timeout_ms * kNanosPerMilli;
    for (const auto& [number, session] : sessions_.sessions()) {
      if (!session.peer.empty()) Send(session.peer, AckFor(session));
    }
  }
  if (finished()) return;
  // Rings left without any session stay so: their learner is gone, and none is let in any more. The
  // learner of the resumed run will drain them.
  const bool gone = sessions_.sessions().empty();
  const bool late = clock_.NowNs() >= drain_deadline_ns_;
  if (gone && pending_.empty() && store_.committed() == store_.pushed()) {
    log::info("drained; {} rings wait for the next learner", slots_.Rings().size());
  } else if (late) {
    log::warn("drain time-out: {} sessions and {} rings are left", sessions_.sessions().size(),
              slots_.Rings().size());
  } else {
    return;
  }
  PublishStatus();
  finished_.store(true, std::memory_order_release);
}

void ControlAgent::OnClose() {
  if (CanStore()) Persist({}, true);
  PublishStatus();
  AppendMetricsLine();
}

void ControlAgent::PublishStatus() {
  last_status_ns_ = clock_.NowNs();
  state_.Sample();
  metrics_.Update(ledger_.counts(), sessions_.Count(wire::Role::kActor),
                  static_cast<double>(sessions_.OldestSilenceNs()) * 1e-9, state_.window(),
                  server_.stats());
  const bool waiting = sessions_.Count(wire::Role::kActor) == 0;
  const char* phase = finished() ? "finished" : "running";
  if (draining() && !finished()) phase = "draining";
  if (!draining() && store_.Full()) phase = "store full";
  if (!draining() && !store_.Full() && waiting) phase = "waiting for actors";
  std::string status = StatusJson({.run = config_.run,
                                   .env = config_.run_config.env,
                                   .phase = phase,
                                   .unix_time = static_cast<std::uint64_t>(std::time(nullptr)),
                                   .epoch = epoch_,
                                   .state = state_,
                                   .sessions = sessions_,
                                   .tokens = ledger_.counts()});
  std::vector<Member> members;
  for (const auto& [number, session] : sessions_.sessions()) {
    if (!session.http_endpoint.empty()) members.push_back({session.name, session.http_endpoint});
  }
  MutexLock lock(status_mu_);
  status_ = std::move(status);
  if (members == members_) return;
  members_ = std::move(members);
  members_revision_.fetch_add(1, std::memory_order_release);
}

void ControlAgent::AppendMetricsLine() {
  if (config_.metrics_path.empty()) return;
  std::ofstream(config_.metrics_path, std::ios::app) << Status() << '\n';
}

std::string ControlAgent::Status() const {
  MutexLock lock(status_mu_);
  return status_;
}

std::vector<Member> ControlAgent::Members() const {
  MutexLock lock(status_mu_);
  return members_;
}

}  // namespace tetrion
