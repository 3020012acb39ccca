#include "lib/setup/init_from.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lib/core/error.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_checkpoint.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

constexpr const char* kBest = "/best";
constexpr const char* kNewest = "/newest";

bool TakeEnd(std::string& text, const std::string& end) {
  if (text.size() <= end.size() || !text.ends_with(end)) return false;
  text.resize(text.size() - end.size());
  return true;
}

// What the shapes of a run's networks follow from.
std::string ShapeOf(const RunConfig& run) {
  const EnvSpec spec = EnvSpecOf(run);
  std::string model = run.algo == "dreamer" ? "DreamerV3 of size " + run.dreamer.size +
                                                  " with norm " + run.dreamer.norm
                                            : "network " + run.network;
  if (HasScorer(run)) model += " of " + std::to_string(run.scorer_units) + " units";
  return model + " over view " + spec.obs.view + " of " + std::to_string(spec.obs.view_floats) +
         " numbers, " + std::to_string(spec.action.count) + " actions";
}

bool IsFinite(const TrainerState& state) {
  return std::all_of(state.tensors.begin(), state.tensors.end(), [](const auto& tensor) {
    return std::all_of(tensor.data.begin(), tensor.data.end(),
                       [](float value) { return std::isfinite(value); });
  });
}

RunFolder OpenRun(const std::string& runs_dir, const std::string& name, const std::string& from) {
  try {
    return RunFolder::Open(runs_dir, name);
  } catch (const Error& error) {
    throw Error(error.code(), "--init-from " + from + ": " + error.what() + "; it takes RUN, RUN" +
                                  kNewest + " or RUN" + kBest);
  }
}

}  // namespace

Checkpoint LoadInitial(const std::string& runs_dir, const std::string& from, const RunConfig& run) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ExitCode::kUsage, "--init-from " + from + ": " + why);
  };
  std::string name = from;
  const bool best = TakeEnd(name, kBest);
  if (!best) TakeEnd(name, kNewest);
  const RunFolder folder = OpenRun(runs_dir, name, from);
  RunConfig theirs = folder.ReadConfig();
  Resolve(theirs);
  if (ShapeOf(theirs) != ShapeOf(run)) {
    refuse("run " + folder.name() + " has " + ShapeOf(theirs) + "; the new run has " +
           ShapeOf(run) + "; give it --env, --view, --algo, --queue-size and " +
           (run.algo == "dreamer" ? "--size and --norm"
            : HasScorer(run)      ? "--network and --scorer-units"
                                  : "--network") +
           " of the other");
  }
  Checkpoint checkpoint;
  try {
    checkpoint = CheckpointOf(folder, best);
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (!IsFinite(checkpoint.state)) {
    refuse(checkpoint.path + " holds NaN or infinity" + (best ? "" : ": try " + name + kBest));
  }
  return checkpoint;
}

TrainerState BegunWith(TrainerState fresh, const TrainerState& initial) {
  for (TrainerState::Tensor& tensor : fresh.tensors) {
    if (std::any_of(kOptimiserPrefixes.begin(), kOptimiserPrefixes.end(),
                    [&](const char* prefix) { return tensor.name.starts_with(prefix); })) {
      continue;
    }
    const TrainerState::Tensor* same = FindTensor(initial, tensor.name);
    if (same == nullptr && tensor.name.starts_with(kTrainedPrefix)) {
      // The other run kept no mean: what plays there is what training goes on from.
      same = FindTensor(
          initial, kPlayedPrefix + tensor.name.substr(std::string_view(kTrainedPrefix).size()));
    }
    if (same == nullptr) continue;
    tensor.shape = same->shape;
    tensor.data = same->data;
  }
  return fresh;
}

}  // namespace tetrion
