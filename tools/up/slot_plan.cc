#include "tools/up/slot_plan.h"

#include <algorithm>

#include "lib/setup/inference_choice.h"
#include "lib/setup/trainer_threads.h"

namespace tetrion {
namespace {

// A worker makes rows as fast as some five cores train on them. More workers only fill their rings
// with rows of older policies (docs/decisions/0024-few-workers-and-short-rings.md).
constexpr int kThreadsPerWorker = 5;                    // of the learner
constexpr int kCoresPerWorker = kThreadsPerWorker + 1;  // its own, too

int RoundedUp(int number, int divisor) {
  return (number + divisor - 1) / divisor;
}

}  // namespace

int WorkersPerActor(const UpOptions& options, const RunConfig& config, int most_slots, int cores) {
  if (options.workers > 0) return options.workers;
  const int threads = TrainerThreads(config, options.threads.value_or(0), cores);
  const int all =
      std::min(RoundedUp(cores, kCoresPerWorker), RoundedUp(threads, kThreadsPerWorker));
  return std::clamp(all / options.actors, 1, MostWorkersPerActor(options, most_slots));
}

int MostWorkersPerActor(const UpOptions& options, int most_slots) {
  return std::clamp(most_slots / (options.actors * options.GroupsOfWorker()), 1, kMostWorkers);
}

SlotNeed SlotNeedOf(const UpOptions& options, const RunConfig& config, int workers) {
  const int lanes = options.replay.resident_lanes;
  if (lanes > 0) {
    const int slots = ResidentGroups(lanes, config);
    return {.slots = slots,
            .text = ResidentGroupsText(lanes, config) + " and need " + std::to_string(slots) +
                    " replay slots",
            .less = "fewer, or more --lanes"};
  }
  const int groups = options.GroupsOfWorker();
  const int slots = options.actors * workers * groups;
  return {.slots = slots,
          .text = std::to_string(options.actors) + " actors of " + std::to_string(workers) +
                  " workers" + (groups > 1 ? " of " + std::to_string(groups) + " groups" : "") +
                  " need " + std::to_string(slots) + " replay slots",
          .less = "fewer actors, workers or groups"};
}

}  // namespace tetrion
