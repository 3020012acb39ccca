#include "lib/setup/trainer_threads.h"

#include <algorithm>

#include "lib/nn/mlp.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

// Networks of our own arithmetic share a batch as threads are free, so that they take back the time
// that workers wait.
bool GainsByThreads(const RunConfig& run) {
  if (run.algo == "dreamer") return run.dreamer.size != "nano";
  if (run.network == "mlp") return MlpShapeOf(EnvSpecOf(run).obs) == MlpShape::kWide;
  return run.network != "conv";
}

}  // namespace

int TrainerThreads(const RunConfig& run, int asked, int usable_cpus) {
  constexpr int kMostUseful = 8;
  if (asked > 0) return asked;
  return GainsByThreads(run) ? std::min(usable_cpus, kMostUseful) : 1;
}

}  // namespace tetrion
