#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/cuda/kernel_spans.h"
#include "lib/nn/dreamer/dreamer_shape.h"

namespace tetrion {

// What acts of DreamerV3's model, and its state, where they lie in device memory: as kernels take
// them. Letters as in lib/nn/dreamer/dreamer_shape.h; M lanes.

struct DreamerLayer {
  cuda::DeviceSpan<const float> weight;  // [in, out]; of blocks [G, in/G, out/G]
  cuda::DeviceSpan<const float> bias;    // [out]
  cuda::DeviceSpan<const float> scale;   // [out] of the norm; empty without
  cuda::DeviceSpan<const float> shift;   // [out] of LayerNorm; empty with RMSNorm
};

struct DreamerActingWeights {
  DreamerLayer encoder[kMlpLayers];
  DreamerLayer core_deter, core_stoch, core_action, core_hidden, core_gates;
  DreamerLayer posterior, posterior_out;
  DreamerLayer actor[kMlpLayers], actor_out;
  unsigned floats = 0, actions = 0;                                   // F, A
  unsigned deter = 0, units = 0, stoch = 0, classes = 0, blocks = 0;  // D, U, S, C, G
  bool symlog = false;                                                // of the view
  double unimix = 0;
};

// A lane's slice of what the layers hand on, in floats from its beginning.
struct DreamerScratch {
  TETRION_HOST_DEVICE explicit DreamerScratch(const DreamerActingWeights& w)
      : first(w.floats),
        second(first + w.units),
        embed(second + w.units),
        core(embed + w.units),
        hidden(core + 3 * w.units),
        gates(hidden + w.deter),
        log_probs(gates + 3 * w.deter),
        floats(log_probs + w.stoch * w.classes) {}
  // The view at 0, [F]; two hidden layers [U]; the encoder's answer [U]; the core's inputs [3 U].
  unsigned first, second, embed, core;
  unsigned hidden, gates;  // [D], [3 D]
  unsigned log_probs;      // [S, C]
  unsigned floats;         // all of it
};

// The lanes' recurrent states.
struct DreamerStates {
  cuda::DeviceSpan<float> deter;          // [M, D]
  cuda::DeviceSpan<std::uint8_t> stoch;   // [M, S] class of each group
  cuda::DeviceSpan<std::int32_t> action;  // [M] taken last; kNoDreamerAction: there is no state
};
inline constexpr std::int32_t kNoDreamerAction = -1;

// What the draws of a row depend on.
struct DreamerDraws {
  std::uint64_t seed = 0;
  cuda::DeviceSpan<const std::uint64_t> token_ids;  // [M]
  cuda::DeviceSpan<const std::uint32_t> steps;      // [M]
};

}  // namespace tetrion
