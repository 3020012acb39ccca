#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/wire/messages.h"

namespace tetrion {

// One replay shard slot and the worker ring that feeds it.
struct Slot {
  enum class State : std::uint8_t {
    kUnused = 0,    // never given out: empty in the replay
    kAssigned = 1,  // given to a worker that has not announced its ring yet
    kRing = 2,      // a ring exists (its owner may be gone: the learner drains it first)
    kDeparted = 3,  // drained and unlinked; its rows stay sampleable until the slot is needed
  };
  State state = State::kUnused;
  std::uint64_t session = 0;
  std::uint32_t worker = 0;
  std::string path;
  std::uint64_t departed = 0;  // order of departure
  bool operator==(const Slot&) const = default;
};

// Which worker feeds which replay slot. A slot is given out: unused ones first, then the one that
// departed longest ago. It comes back only when the learner reports its ring drained and unlinked,
// or when its session ends before it announced a ring. A ring belongs to the actor's process: a
// process that registers anew claims its rings by path. Pure; one thread.
class SlotTable {
 public:
  explicit SlotTable(std::size_t slots) : slots_(slots) {}
  // From the store, `slots` of them.
  explicit SlotTable(std::vector<Slot> slots);

  // A slot per worker: those the session has, those of `rings` it still owns, then free ones.
  // nullopt and no change when there are not enough.
  std::optional<std::vector<std::int32_t>> Assign(std::uint64_t session, std::uint32_t workers,
                                                  std::span<const wire::RingInfo> rings);
  // The worker's ring exists now. False (and no change) when the slot is not that worker's.
  bool Announce(std::uint64_t session, const wire::RingInfo& ring);
  // The ring is drained and unlinked. Returns the session that owned it, nullopt for a path not
  // known.
  std::optional<std::uint64_t> Gone(const std::string& path);
  // The session is over: slots without a ring come back.
  void EndSession(std::uint64_t session);

  // Every ring that exists, and a number that grows with every change of that list.
  std::vector<wire::RingInfo> Rings() const;
  std::uint64_t revision() const { return revision_; }
  std::size_t InUse() const;
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  void Depart(Slot& slot);

  std::vector<Slot> slots_;
  std::uint64_t next_departure_ = 1;
  std::uint64_t revision_ = 1;
};

}  // namespace tetrion
