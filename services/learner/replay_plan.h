#pragma once

#include <memory>

#include "lib/replay/limiter.h"
#include "lib/replay/selectors/selector.h"
#include "lib/run/run_config.h"
#include "lib/setup/device_choice.h"
#include "services/learner/replay_memory.h"

namespace tetrion::learner {

// What a run's algorithm asks of the replay: V-trace takes every window of all lanes once (fifo);
// DreamerV3 draws windows of one lane as often as its train ratio says (online, uniform).

std::unique_ptr<Selector> MakeSelector(const RunConfig& run, const ReplayShape& shape);
Limiter LimiterOf(const RunConfig& run);
// Lanes of a batch.
int BatchLanesOf(const RunConfig& run, const ReplayShape& shape);
// Whether windows are drawn as often as it is asked, of one lane each: rows that no trainer has
// seen may then be overwritten, and a drain need not wait for the trainer.
bool DrawsAgain(const RunConfig& run);

}  // namespace tetrion::learner
