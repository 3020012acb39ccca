#include "lib/rl/possible_actions.h"

#include <algorithm>

#include "lib/core/error.h"

namespace tetrion {

void CheckActions(std::span<const std::int32_t> actions, int count) {
  const auto end = static_cast<std::uint32_t>(count);
  const bool possible = std::all_of(actions.begin(), actions.end(), [end](std::int32_t action) {
    return static_cast<std::uint32_t>(action) < end;
  });
  if (possible) return;
  throw Error(ExitCode::kTryAgain,
              "a row of the replay has an action that the environment has not: a process wrote "
              "into a ring after the learner had checked it; end what else has it open");
}

}  // namespace tetrion
