#pragma once

#include <cstdint>

#include "lib/frame/specs.h"
#include "lib/nn/parameters.h"

namespace tetrion {

// Network `conv`, whose arithmetic is the tensor library's (lib/nn/torch/torch_networks.h): the
// planes that it reads of view `planes`, and its parameters, for all that need their size.
inline constexpr std::int64_t kConvPlanes = 2;  // field, active piece
inline constexpr std::int64_t kConvPlaneRows = 20, kConvPlaneColumns = 10;
inline constexpr std::int64_t kConvPlaneFloats = kConvPlanes * kConvPlaneRows * kConvPlaneColumns;
inline constexpr std::int64_t kConvChannels = 32;

// Throws Error(kUsage) for other views.
ParameterLayout ConvLayout(const EnvSpec& env);

}  // namespace tetrion
