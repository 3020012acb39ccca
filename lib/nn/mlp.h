#pragma once

#include <cstdint>

#include "lib/frame/specs.h"
#include "lib/nn/parameters.h"

namespace tetrion {

// Network `mlp`: what its two shapes are made of, for all that compute them.
//
//   small, for view `vector`: policy and value have a trunk each
//     view [N, F] -> (Linear -> tanh) x 2, 64 units -> head
//   wide, for every other view: both heads share a trunk
//     view [N, F] -> (Linear -> LayerNorm -> SiLU) x 2, 256 units -> heads
enum class MlpShape : std::uint8_t { kSmall, kWide };

inline constexpr std::int64_t kSmallMlpUnits = 64;
inline constexpr std::int64_t kWideMlpUnits = 256;
inline constexpr double kLayerNormEpsilon = 1e-5;  // added to the variance

MlpShape MlpShapeOf(const ObsSpec& obs);
ParameterLayout MlpLayout(const EnvSpec& env);

// Adds the wide trunk and its heads for `in` inputs.
void AddWideTrunk(ParameterLayout& layout, std::int64_t in, std::int64_t actions);

}  // namespace tetrion
