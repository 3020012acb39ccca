#include "services/learner/trainer_factory.h"

#include <cmath>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/metrics/figures.h"
#include "lib/nn/categorical.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/vtrace/vtrace_figures.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/setup/run_setup.h"
#if defined(TETRION_WITH_TORCH)
#include "lib/core/log.h"
#include "lib/rl/dreamer/cuda/device_place.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#else
#include "lib/core/no_tensor_library.h"
#endif

namespace tetrion::learner {

static_assert(kScorerUnitsStepOfRun == kScorerUnitsStep);
static_assert(NameMetrics(kVtraceFigures) && FitBesideTheLearners(kVtraceFigures));
static_assert(NameMetrics(kDreamerFigures) && FitBesideTheLearners(kDreamerFigures));

namespace {

constexpr const char* kDreamer = "dreamer";

#if defined(TETRION_WITH_TORCH)

std::unique_ptr<UpdatePlace> DreamerPlace(const DeviceChoice& choice, ReplayMemory& memory) {
  const bool on_cuda = choice.trainer == "auto" && choice.device == "cuda";
  if (on_cuda && !UpdatesOnCuda()) {
    log::info("updates are computed on the CPU: this build's tensor library has no part for CUDA");
  }
  if (choice.trainer != "device" && !(on_cuda && UpdatesOnCuda())) return nullptr;
  std::unique_ptr<UpdatePlace> place = MakeUpdatePlace(memory.on_device()->device);
  log::info("updates are computed on {}", memory.on_device()->device.name());
  return place;
}

std::unique_ptr<Trainer> MakeDreamer(const RunConfig& run, int threads,
                                     std::unique_ptr<UpdatePlace> place) {
  return MakeDreamerTrainer({.settings = run.dreamer,
                             .seed = run.seed,
                             .window = run.window,
                             .batch_lanes = run.batch_windows,
                             .threads = threads},
                            EnvSpecOf(run), std::make_unique<OneLearner>(), std::move(place));
}

#else

[[noreturn]] void RefuseDreamer() {
  throw Error(ExitCode::kUsage, NoTensorLibrary(std::string("algo ") + kDreamer));
}
std::unique_ptr<UpdatePlace> DreamerPlace(const DeviceChoice&, ReplayMemory&) {
  RefuseDreamer();
}
std::unique_ptr<Trainer> MakeDreamer(const RunConfig&, int, std::unique_ptr<UpdatePlace>) {
  RefuseDreamer();
}
LatentSpec DreamerLatents(const DreamerSettings&) {
  RefuseDreamer();
}

#endif

}  // namespace

std::optional<LatentSpec> LatentsOf(const RunConfig& run) {
  if (run.algo != kDreamer) return std::nullopt;
  return DreamerLatents(run.dreamer);
}

std::unique_ptr<UpdatePlace> UpdatePlaceOf(const DeviceChoice& choice, const RunConfig& run,
                                           ReplayMemory& memory) {
  if (run.algo == kDreamer) return DreamerPlace(choice, memory);
  if (choice.trainer != "device") return nullptr;
  throw Error(ExitCode::kUsage,
              "--trainer-device device: algorithm " + run.algo +
                  " computes its updates on the CPU; leave the option out, or train with algo = "
                  "dreamer");
}

EntropyRange EntropyOf(const RunConfig& run) {
  const int actions = EnvSpecOf(run).action.count;
  const double share = run.algo == kDreamer ? run.dreamer.actor_unimix : 0.0;
  return {.least = LeastEntropy(share, actions), .largest = std::log(static_cast<double>(actions))};
}

std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, const RowSpec& row, int threads,
                                     std::unique_ptr<UpdatePlace> place) {
  // One an algorithm; RunConfig refuses other names.
  if (run.algo == kDreamer) return MakeDreamer(run, threads, std::move(place));
  TETRION_CHECK(run.algo == "vtrace", "an algorithm without a trainer");
  TETRION_CHECK(place == nullptr, "V-trace computes its updates on the CPU");
  return MakeVtraceTrainer({.settings = run.vtrace,
                            .network = run.network,
                            .scorer_units = run.scorer_units,
                            .precision = PrecisionOf(run.precision),
                            .seed = run.seed,
                            .window = run.window,
                            .batch_windows = run.batch_windows,
                            .threads = threads},
                           EnvSpecOf(run), row);
}

}  // namespace tetrion::learner
