#pragma once

#include "lib/frame/specs.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/rl/dreamer/dreamer_settings.h"

namespace tetrion {

// The model that a run's settings mean for an environment. Throws as DreamerShapeOf.
inline DreamerShape ModelShapeOf(const EnvSpec& env, const DreamerSettings& settings) {
  DreamerShape shape = DreamerShapeOf(env, settings.size);
  shape.layer_norm = settings.norm == "layer";
  shape.unimix = settings.unimix;
  shape.actor_unimix = settings.actor_unimix;
  return shape;
}

}  // namespace tetrion
