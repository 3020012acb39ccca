#include "services/coordinator/rings.h"

#include <optional>
#include <string>

#include "lib/core/log.h"
#include "lib/wire/remote_path.h"

namespace tetrion::coordinator {

void Rings::On(const wire::PeerId& peer, const wire::RingsReady& m) {
  const Session* session = leases_.Live(peer, m.session);
  if (session == nullptr || !book_.CanStore()) return;
  const std::uint64_t before = book_.slots.revision();
  for (const wire::RingInfo& ring : m.rings) {
    if (!book_.slots.Announce(m.session, ring)) {
      context_.LogOdd("session " + std::to_string(SessionTable::SequenceOf(m.session)) +
                      " announced the ring " + ring.path + " for slot " +
                      std::to_string(ring.slot) + ", which is not its own");
    }
  }
  if (book_.slots.revision() != before) {
    context_.slots_ticket = book_.Persist({}, Durability::kPromise);
  }
  context_.ReplyAfter(context_.slots_ticket, peer, m.session, wire::RingsAck{m.session});
}

bool Rings::IsLeaving(std::uint64_t number) {
  const Session* session = book_.sessions.Find(number);
  return session == nullptr || session->phase == wire::kPhaseDraining;
}

// The process behind the ring cannot go on: what it plays never reaches the learner.
void Rings::RefuseUnusableRing(const SlotTable::Owner& owner, const wire::RingGone& m) {
  const std::string text =
      "the learner cannot use the ring " + m.path + ": " + m.reason + "; start the actor again";
  book_.processes.Ban(owner.process, text);
  leases_.EndRefused(owner.session, wire::RefuseReason::kRingUnusable, text);
}

void Rings::On(const wire::PeerId& peer, const wire::RingGone& m) {
  const Session* learner = leases_.Live(peer, m.session);
  if (learner == nullptr || learner->role != wire::Role::kLearner || !book_.CanStore()) return;
  rings_due_ = true;
  const std::optional<SlotTable::Owner> owner = book_.slots.Gone(m.path, m.owner);
  if (!owner.has_value()) return;  // the list that is due says what there is now
  context_.slots_ticket = book_.Persist({}, Durability::kPromise);
  switch (m.end) {
    case wire::RingEnd::kClosed:
      log::info("ring {} is drained and gone", m.path);
      break;
    case wire::RingEnd::kOwnerDead:
      log::info("ring {} is drained and gone, its owner died", m.path);
      if (wire::IsRemoteRingPath(m.path)) {
        // It was silent and may live: when it comes back, its steps go on from those counted.
        leases_.EndSession(owner->session, "its rows were silent", SessionEnd::kLease);
      } else {
        leases_.EndSession(owner->session, "its process died", SessionEnd::kDied);
      }
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

void Rings::SendDue() {
  if (rings_due_ || rings_told_ != book_.slots.revision()) SendRings();
}

// The newest list, once it is committed; a list is never queued, so that a slow store gathers none.
void Rings::SendRings() {
  if (context_.slots_ticket > store_.committed()) return;
  rings_due_ = false;
  rings_told_ = book_.slots.revision();
  const Session* learner = book_.sessions.Learner();
  if (learner == nullptr || learner->peer.empty()) return;
  wire::RingList list = {learner->number, book_.slots.revision(), book_.slots.Rings()};
  for (wire::RingInfo& ring : list.rings) {
    if (book_.sessions.Find(ring.owner) == nullptr) ring.session = 0;
  }
  context_.Send(learner->peer, list);
}

}  // namespace tetrion::coordinator
