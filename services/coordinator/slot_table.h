#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/wire/messages.h"

namespace tetrion::coordinator {

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
  std::uint64_t process = 0;  // of the worker; a ring stays its process's over sessions
  std::uint32_t worker = 0;
  std::string path;
  std::uint64_t departed = 0;  // order of departure
  bool operator==(const Slot&) const = default;
};

// Slots that changed, by number: what the store writes.
using SlotChanges = std::vector<std::pair<std::uint32_t, Slot>>;

// Which worker feeds which replay slot. A slot is given out: unused ones first, then the one that
// departed longest ago. It comes back only when the learner reports its ring drained and unlinked,
// or when its session ends before it announced a ring. A ring belongs to the actor's process: a
// process that registers anew claims its rings by path, and its new session owns them from then on.
// Costs follow the workers of a call, not the table. Pure; one thread.
class SlotTable {
 public:
  // Who asks for slots.
  struct Owner {
    std::uint64_t session = 0;
    std::uint64_t process = 0;
  };

  explicit SlotTable(std::size_t slots) : SlotTable(std::vector<Slot>(slots)) {}
  // From the store.
  explicit SlotTable(std::vector<Slot> slots);

  // A slot per worker: those the session has, those of `rings` the process still owns, then free
  // ones. nullopt and no change when there are not enough.
  std::optional<std::vector<std::int32_t>> Assign(const Owner& owner, std::uint32_t workers,
                                                  std::span<const wire::RingInfo> rings);
  // The worker's ring exists now. False (and no change) when the slot is not that worker's.
  bool Announce(std::uint64_t session, const wire::RingInfo& ring);
  // The ring that session `owner` had under that path has ended; 0: any session's. Returns whose it
  // was. nullopt, and no change, for a path not known, or a remote one of another owner: the word
  // is of an earlier ring of that path, or of one that has been claimed since and begins anew.
  std::optional<Owner> Gone(const std::string& path, std::uint64_t owner);
  // The session is over: slots without a ring come back. Its rings stay, as those of no session.
  void EndSession(std::uint64_t session);

  // Every ring that exists, `session` and `owner` alike, and a number that grows with every change
  // of that list or of which of its owners have ended.
  std::vector<wire::RingInfo> Rings() const;
  std::uint64_t revision() const { return revision_; }
  std::size_t InUse() const { return slots_.size() - free_.size(); }
  std::size_t size() const { return slots_.size(); }
  const std::vector<Slot>& slots() const { return slots_; }
  // Changed since the last call.
  SlotChanges TakeDirty();

 private:
  // Replaces the slot and keeps the indexes in step.
  void Put(std::int32_t number, Slot slot);
  void Depart(std::int32_t number);

  std::vector<Slot> slots_;
  // Indexes of slots_. Unused slots have departed = 0, so they come first.
  std::set<std::pair<std::uint64_t, std::int32_t>> free_;
  std::unordered_map<std::uint64_t, std::set<std::int32_t>> of_session_;
  std::unordered_map<std::string, std::int32_t> by_path_;
  std::set<std::int32_t> rings_;  // slots with a ring
  std::set<std::int32_t> dirty_;
  std::uint64_t next_departure_ = 1;
  std::uint64_t revision_ = 1;
};

}  // namespace tetrion::coordinator
