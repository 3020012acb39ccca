#pragma once

#include <cstdint>
#include <memory>

#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/replay/latents.h"
#include "lib/rl/dreamer/dreamer_settings.h"
#include "lib/rl/dreamer/update_place.h"
#include "lib/rl/gradient_sync.h"
#include "lib/rl/trainer.h"

namespace tetrion {

struct DreamerConfig {
  DreamerSettings settings;
  std::uint64_t seed = 1;  // of initial weights and of samples
  int window = 2;          // T, rows of a window behind its context row
  int batch_lanes = 1;     // B
  int threads = 1;         // of the tensor library, the caller's included
};

// What the replay keeps of the model's state beside each row.
LatentSpec DreamerLatents(const DreamerSettings& settings);

// DreamerV3 (Hafner et al., 2023): a world model learned from replayed windows, and actor and
// critic learned in what it imagines. One update a batch; rows 1..T get their latents written back.
//
// The batches a source delivers must have config.window steps and config.batch_lanes lanes, and
// rows with DreamerLatents. PolicyBlob is what acting needs: the first ActingFloats
// (lib/nn/dreamer/dreamer_shape.h) of the parameters. Throws Error(kUsage) for settings out of
// range.
//
// An update asks `sync` once whether all learners can step, and where they can gives it every
// parameter's gradient. With `place`, updates are computed there and not on the CPU, and there is
// one learner: `sync` is not asked. A skipped update (a part of the loss that is not finite, here
// or in another learner) leaves everything as it was, and UpdateStats says which part was not
// finite first. A batch without a row of an episode is no update and not a skipped one; `sync` is
// told that this learner cannot step.
//
// Save gives the model's parameters, LaProp's moments, the slow critic (prefixes:
// lib/checkpoint/state.h), "return_range" and the counter "updates". Load of another algorithm's or
// another size's checkpoint throws as ReadTensor; the trainer is then as it was.
std::unique_ptr<Trainer> MakeDreamerTrainer(
    const DreamerConfig& config, const EnvSpec& env,
    std::unique_ptr<GradientSync> sync = std::make_unique<OneLearner>(),
    std::unique_ptr<UpdatePlace> place = nullptr);

}  // namespace tetrion
