#include "lib/setup/run_checkpoint.h"

#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion {

Checkpoint CheckpointOf(const RunFolder& folder, bool best) {
  constexpr int kKeepLast = 1;  // of no matter here: nothing is saved
  const CheckpointStore store(folder.checkpoints(), kKeepLast);
  std::optional<Checkpoint> checkpoint = best ? store.LoadBest() : store.LoadNewest();
  if (!checkpoint) {
    throw Error(ExitCode::kConfig,
                "run " + folder.name() + " has no checkpoint yet: let it train on");
  }
  if (!checkpoint->warning.empty()) log::warn("{}", checkpoint->warning);
  return *std::move(checkpoint);
}

}  // namespace tetrion
