#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/nn/network.h"
#include "lib/rl/gradient_sync.h"
#include "lib/rl/trainer.h"
#include "lib/rl/vtrace/vtrace_settings.h"

namespace tetrion {

struct VtraceConfig {
  VtraceSettings settings;
  std::string network = "auto";     // as NetworkConfig::name
  int scorer_units = kScorerUnits;  // as NetworkConfig's
  Precision precision = Precision::kF32;
  std::uint64_t seed = 1;  // initial weights
  int window = 1;          // T, transitions of a window
  int batch_windows = 1;   // windows of a batch; lanes of a batch B = batch_windows * M
  double adam_epsilon = 1e-5;
  int threads = 1;  // of the network, the caller's included
};

// V-trace actor-critic (Espeholt et al., IMPALA, 2018) over fifo windows. A lane's targets need
// only that lane's rows, so a minibatch is a group of lanes and costs no extra forward pass.
//
// `rows` gives M; the batches a source delivers must have config.window steps and
// config.batch_windows windows. Every buffer is allocated here. Throws Error(kUsage) for settings
// out of range.
//
// `sync` gets every parameter's gradient in one call an update; an update that is skipped before
// its backward pass (a loss that is not finite, no row to learn from) reduces nothing.
//
// Parameters stay finite whatever a batch holds (lib/rl/guarded_adam.h): an update that is not
// finite is skipped or taken back, and UpdateStats says so.
//
// Save gives the parameters that play, Adam's moments (prefixes: lib/checkpoint/state.h) and the
// counter "updates". With settings.average_updates the mean of the weights plays, and those that
// training goes on from are there, too; PolicyBlob gives the latter, which act.
std::unique_ptr<Trainer> MakeVtraceTrainer(
    const VtraceConfig& config, const EnvSpec& env, const RowSpec& rows,
    std::unique_ptr<GradientSync> sync = std::make_unique<OneLearner>());

}  // namespace tetrion
