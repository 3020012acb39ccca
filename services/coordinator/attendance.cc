#include "services/coordinator/attendance.h"

#include <string>

namespace tetrion::coordinator {

Attendance::Attendance(ControlContext& context, Leases& leases, Rings& rings)
    : context_(context),
      leases_(leases),
      rings_(rings),
      book_(context.book),
      store_(context.store),
      clock_(context.clock) {}

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
    if (m.region_held && !session->region_held && book_.CanStore()) {
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
  if (session != nullptr) {
    session->peer.clear();  // it gets the answer below, not Fenced
    leases_.EndSession(m.session, "goodbye", /*returns=*/false);
  } else if (present == nullptr && book_.processes.Find(context_.sender.process) != nullptr) {
    book_.processes.Forget(context_.sender.process);
    book_.Persist({}, Durability::kReport);
  }
  context_.ReplyAfter(store_.pushed(), peer, 0, wire::GoodbyeAck{m.session});
}

}  // namespace tetrion::coordinator
