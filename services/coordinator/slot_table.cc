#include "services/coordinator/slot_table.h"

#include <algorithm>
#include <utility>

namespace tetrion {
namespace {

bool IsFree(const Slot& slot) {
  return slot.state == Slot::State::kUnused || slot.state == Slot::State::kDeparted;
}

// Unused slots come first (departed = 0), then the oldest departure; -1: none is free.
std::int32_t NextFree(const std::vector<Slot>& slots) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!IsFree(slots[i])) continue;
    if (best < 0 || slots[i].departed < slots[static_cast<std::size_t>(best)].departed) {
      best = static_cast<std::int32_t>(i);
    }
  }
  return best;
}

}  // namespace

SlotTable::SlotTable(std::vector<Slot> slots) : slots_(std::move(slots)) {
  for (const Slot& slot : slots_) next_departure_ = std::max(next_departure_, slot.departed + 1);
}

std::optional<std::vector<std::int32_t>> SlotTable::Assign(std::uint64_t session,
                                                           std::uint32_t workers,
                                                           std::span<const wire::RingInfo> rings) {
  std::vector<Slot> slots = slots_;
  std::vector<std::int32_t> given(workers, -1);
  bool rings_changed = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].session == session && !IsFree(slots[i]) && slots[i].worker < workers) {
      given[slots[i].worker] = static_cast<std::int32_t>(i);
    }
  }
  for (const wire::RingInfo& ring : rings) {
    const bool known = ring.slot >= 0 && static_cast<std::size_t>(ring.slot) < slots.size();
    if (!known || ring.worker >= workers || given[ring.worker] >= 0) continue;
    Slot& slot = slots[static_cast<std::size_t>(ring.slot)];
    if (slot.state != Slot::State::kRing || slot.path != ring.path) continue;
    slot.session = session;
    slot.worker = ring.worker;
    given[ring.worker] = ring.slot;
    rings_changed = true;
  }
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    if (given[worker] >= 0) continue;
    const std::int32_t free = NextFree(slots);
    if (free < 0) return std::nullopt;
    slots[static_cast<std::size_t>(free)] = {
        .state = Slot::State::kAssigned, .session = session, .worker = worker};
    given[worker] = free;
  }
  slots_ = std::move(slots);
  if (rings_changed) ++revision_;
  return given;
}

bool SlotTable::Announce(std::uint64_t session, const wire::RingInfo& ring) {
  if (ring.slot < 0 || static_cast<std::size_t>(ring.slot) >= slots_.size()) return false;
  Slot& slot = slots_[static_cast<std::size_t>(ring.slot)];
  if (slot.session != session || slot.worker != ring.worker || ring.path.empty()) return false;
  if (slot.state == Slot::State::kRing) return slot.path == ring.path;
  if (slot.state != Slot::State::kAssigned) return false;
  const bool taken = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& other) {
    return other.state == Slot::State::kRing && other.path == ring.path;
  });
  if (taken) return false;
  slot.state = Slot::State::kRing;
  slot.path = ring.path;
  ++revision_;
  return true;
}

std::optional<std::uint64_t> SlotTable::Gone(const std::string& path) {
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::kRing || slot.path != path) continue;
    const std::uint64_t owner = slot.session;
    Depart(slot);
    ++revision_;
    return owner;
  }
  return std::nullopt;
}

void SlotTable::Depart(Slot& slot) {
  slot = {.state = Slot::State::kDeparted, .departed = next_departure_++};
}

void SlotTable::EndSession(std::uint64_t session) {
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::kAssigned && slot.session == session) Depart(slot);
  }
}

std::vector<wire::RingInfo> SlotTable::Rings() const {
  std::vector<wire::RingInfo> rings;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.state != Slot::State::kRing) continue;
    rings.push_back({slot.path, slot.worker, static_cast<std::int32_t>(i), slot.session});
  }
  return rings;
}

std::size_t SlotTable::InUse() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !IsFree(slot); }));
}

}  // namespace tetrion
