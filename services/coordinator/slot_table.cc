#include "services/coordinator/slot_table.h"

#include <algorithm>
#include <utility>

#include "lib/wire/remote_path.h"

namespace tetrion::coordinator {
namespace {

bool IsFree(const Slot& slot) {
  return slot.state == Slot::State::kUnused || slot.state == Slot::State::kDeparted;
}

}  // namespace

SlotTable::SlotTable(std::vector<Slot> slots) : slots_(slots.size()) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    next_departure_ = std::max(next_departure_, slots[i].departed + 1);
    free_.emplace(0, static_cast<std::int32_t>(i));
    Put(static_cast<std::int32_t>(i), std::move(slots[i]));
  }
  dirty_.clear();
}

void SlotTable::Put(std::int32_t number, Slot slot) {
  Slot& place = slots_[static_cast<std::size_t>(number)];
  free_.erase({place.departed, number});
  if (place.session != 0) {
    const auto owned = of_session_.find(place.session);
    owned->second.erase(number);
    if (owned->second.empty()) of_session_.erase(owned);
  }
  if (place.state == Slot::State::kRing) by_path_.erase(place.path);
  rings_.erase(number);
  place = std::move(slot);
  if (IsFree(place)) free_.emplace(place.departed, number);
  if (place.session != 0) of_session_[place.session].insert(number);
  if (place.state == Slot::State::kRing) {
    by_path_[place.path] = number;
    rings_.insert(number);
  }
  dirty_.insert(number);
}

std::optional<std::vector<std::int32_t>> SlotTable::Assign(const Owner& owner,
                                                           std::uint32_t workers,
                                                           std::span<const wire::RingInfo> rings) {
  std::vector<std::int32_t> given(workers, -1);
  if (const auto owned = of_session_.find(owner.session); owned != of_session_.end()) {
    for (const std::int32_t number : owned->second) {
      const Slot& slot = slots_[static_cast<std::size_t>(number)];
      if (slot.worker < workers) given[slot.worker] = number;
    }
  }
  std::vector<std::pair<std::int32_t, std::uint32_t>> claimed;  // slot, worker
  for (const wire::RingInfo& ring : rings) {
    if (ring.worker >= workers || given[ring.worker] >= 0) continue;
    const auto found = by_path_.find(ring.path);
    if (found == by_path_.end() || found->second != ring.slot) continue;
    if (slots_[static_cast<std::size_t>(ring.slot)].process != owner.process) continue;
    given[ring.worker] = ring.slot;
    claimed.emplace_back(ring.slot, ring.worker);
  }
  const auto missing = static_cast<std::size_t>(std::count(given.begin(), given.end(), -1));
  if (missing > free_.size()) return std::nullopt;
  for (const auto& [number, worker] : claimed) {
    Slot slot = slots_[static_cast<std::size_t>(number)];
    slot.session = owner.session;
    slot.worker = worker;
    Put(number, std::move(slot));
  }
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    if (given[worker] >= 0) continue;
    given[worker] = free_.begin()->second;
    Put(given[worker], {.state = Slot::State::kAssigned,
                        .session = owner.session,
                        .process = owner.process,
                        .worker = worker});
  }
  if (!claimed.empty()) ++revision_;
  return given;
}

bool SlotTable::Announce(std::uint64_t session, const wire::RingInfo& ring) {
  if (ring.slot < 0 || static_cast<std::size_t>(ring.slot) >= slots_.size()) return false;
  const Slot& slot = slots_[static_cast<std::size_t>(ring.slot)];
  if (slot.session != session || slot.worker != ring.worker || ring.path.empty()) return false;
  if (slot.state == Slot::State::kRing) return slot.path == ring.path;
  if (slot.state != Slot::State::kAssigned || by_path_.contains(ring.path)) return false;
  Slot announced = slot;
  announced.state = Slot::State::kRing;
  announced.path = ring.path;
  Put(ring.slot, std::move(announced));
  ++revision_;
  return true;
}

std::optional<SlotTable::Owner> SlotTable::Gone(const std::string& path, std::uint64_t owner) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  const std::int32_t number = found->second;
  const Slot& slot = slots_[static_cast<std::size_t>(number)];
  // A ring's file is made once: its end is its end, whichever session has claimed it since.
  const bool begins_anew = wire::IsRemoteRingPath(path);
  if (begins_anew && owner != 0 && owner != slot.session) return std::nullopt;
  const Owner whose = {slot.session, slot.process};
  Depart(number);
  ++revision_;
  return whose;
}

void SlotTable::Depart(std::int32_t number) {
  Put(number, {.state = Slot::State::kDeparted, .departed = next_departure_++});
}

void SlotTable::EndSession(std::uint64_t session) {
  const auto owned = of_session_.find(session);
  if (owned == of_session_.end()) return;
  const std::set<std::int32_t> numbers = owned->second;  // Depart changes the original
  bool has_rings = false;
  for (const std::int32_t number : numbers) {
    const bool has_ring = slots_[static_cast<std::size_t>(number)].state == Slot::State::kRing;
    if (!has_ring) Depart(number);
    has_rings |= has_ring;
  }
  if (has_rings) ++revision_;
}

std::vector<wire::RingInfo> SlotTable::Rings() const {
  std::vector<wire::RingInfo> rings;
  rings.reserve(rings_.size());
  for (const std::int32_t number : rings_) {
    const Slot& slot = slots_[static_cast<std::size_t>(number)];
    rings.push_back({slot.path, slot.worker, number, slot.session, slot.session});
  }
  return rings;
}

SlotChanges SlotTable::TakeDirty() {
  SlotChanges changes;
  changes.reserve(dirty_.size());
  for (const std::int32_t number : dirty_) {
    changes.emplace_back(number, slots_[static_cast<std::size_t>(number)]);
  }
  dirty_.clear();
  return changes;
}

}  // namespace tetrion::coordinator
