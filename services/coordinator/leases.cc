#include "services/coordinator/leases.h"

#include <algorithm>
#include <utility>

#include "lib/core/log.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kMaxStallNs = kNanosPerSecond;
constexpr std::int64_t kReturnNs = 2 * kNanosPerSecond;
constexpr std::int64_t kMaxReturnNs = 60 * kNanosPerSecond;

// Below the lease, however short: a stall that outlasts it would end every session.
std::int64_t StallNs(std::uint32_t lease_ms) {
  return std::min(kMaxStallNs, lease_ms * kNanosPerMilli / 2);
}

}  // namespace

Leases::Leases(ControlContext& context)
    : ControlPart(context),
      stall_ns_(StallNs(config_.session_lease_ms)),
      start_ns_(clock_.NowNs()) {}

Session* Leases::Live(const wire::PeerId& peer, std::uint64_t number) {
  Session* session = book_.sessions.Find(number);
  if (session == nullptr) {
    metrics_.Fenced();
    // A member that was told forgets what it holds and numbers its messages from 1 again: the
    // session must not come back after a crash. Until its end is stored, the member asks in vain.
    if (context_.ended_ticket <= store_.committed()) context_.Send(peer, wire::Fenced{number});
    return nullptr;
  }
  if (session->process != context_.sender.process) {
    // Never an honest member: no answer, and nothing of the session changes.
    metrics_.Impostor();
    context_.LogOdd("dropped a message for a session of " + session->name + " by another process");
    return nullptr;
  }
  NoteReturn(*session, /*is_new=*/false);
  session->peer = peer;
  book_.sessions.Renew(*session);
  return session;
}

void Leases::NoteReturn(const Session& session, bool is_new) {
  if (!is_new && session.peer.empty()) last_return_ns_ = clock_.NowNs();
}

bool Leases::RefuseImpossible(std::uint64_t number, const std::string& impossible) {
  if (impossible.empty()) return false;
  context_.LogOdd("session " + std::to_string(SessionTable::SequenceOf(number)) +
                  " told the impossible: " + impossible);
  if (book_.CanStore()) EndRefused(number, wire::RefuseReason::kImpossible, impossible);
  return true;
}

void Leases::EndSession(std::uint64_t number, const std::string& why, SessionEnd end) {
  const Session* session = book_.sessions.Find(number);
  if (session == nullptr) return;
  const std::string name = session->name;
  const wire::PeerId peer = session->peer;
  // A process that was silent or was refused may come back and is remembered.
  const bool returns = end == SessionEnd::kLease || end == SessionEnd::kRefused;
  const bool had_slots = session->MayHaveSlots();
  const std::uint64_t freed = book_.End(number, returns);
  metrics_.Ended(end);
  context_.ended_ticket = store_.pushed();
  if (had_slots) context_.slots_ticket = context_.ended_ticket;
  context_.members_changed = true;
  context_.LogSession("session " + std::to_string(SessionTable::SequenceOf(number)) + " of " +
                      name + " ended: " + why + "; " + std::to_string(freed) +
                      " tokens are free again");
  if (!peer.empty()) context_.ReplyAfter(context_.ended_ticket, peer, 0, wire::Fenced{number});
}

void Leases::EndRefused(std::uint64_t number, wire::RefuseReason reason, const std::string& text) {
  Session* session = book_.sessions.Find(number);
  if (session == nullptr) return;
  const wire::PeerId peer = std::exchange(session->peer, {});  // told below, and not that it ended
  EndSession(number, text, SessionEnd::kRefused);
  if (peer.empty()) return;
  metrics_.Refused(reason);
  context_.ReplyAfter(context_.ended_ticket, peer, 0, wire::Refused{reason, text});
}

void Leases::JudgeLeases() {
  const std::int64_t now_ns = clock_.NowNs();
  const bool stalled = last_judged_ns_ == 0 || now_ns - last_judged_ns_ > stall_ns_;
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
    EndSession(number, "its lease is over", SessionEnd::kLease);
  }
}

bool Drain::Step() {
  if (!context_.draining()) {
    const bool asked = requested_.load(std::memory_order_acquire);
    if (!asked && !book_.state.StopReached()) return false;
    log::info("draining: {}", asked ? "asked to stop" : "--stop-after is reached");
    context_.StartDrain();
    deadline_ns_ = clock_.NowNs() + config_.drain_timeout_ms * kNanosPerMilli;
    for (const auto& [number, session] : book_.sessions.sessions()) {
      if (!session.peer.empty()) context_.Send(session.peer, context_.AckFor(session));
    }
  }
  // Rings left without any session stay so: their learner is gone, and none is let in any more. The
  // learner of the resumed run will drain them.
  const bool gone = book_.sessions.sessions().empty();
  const bool late = clock_.NowNs() >= deadline_ns_;
  if (gone && context_.replies().empty() && store_.committed() == store_.pushed()) {
    log::info("drained; {} rings wait for the next learner", book_.slots.Rings().size());
  } else if (late) {
    const bool stored = store_.committed() == store_.pushed();
    log::warn("drain time-out: {} sessions and {} rings are left{}",
              book_.sessions.sessions().size(), book_.slots.Rings().size(),
              stored ? "" : ", and the store cannot be written: " + store_.PauseReason());
  } else {
    return false;
  }
  return true;
}

}  // namespace tetrion::coordinator
