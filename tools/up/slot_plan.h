#pragma once

#include <string>

#include "tools/up/up_options.h"

namespace tetrion {

// How many workers a planned run has, and the replay slots that they need.

// Worker threads of each actor: those that were asked for, or what the cores make of it. `config`:
// the run's; `most_slots`: replay slots that it has or may be given; `cores` may be used.
int WorkersPerActor(const UpOptions& options, const RunConfig& config, int most_slots, int cores);
// The most that an actor can have with so many slots, at least 1.
int MostWorkersPerActor(const UpOptions& options, int most_slots);

// Replay slots that the actors' workers need, or the lanes that the learner plays itself.
struct SlotNeed {
  int slots = 0;
  std::string text;  // "2 actors of 3 workers of 4 groups need 24 replay slots"
  std::string less;  // "fewer actors, workers or groups"
};
// Throws Error(kUsage) for resident lanes that are no whole groups of the run's.
SlotNeed SlotNeedOf(const UpOptions& options, const RunConfig& config, int workers);

}  // namespace tetrion
