#include "lib/nn/conv.h"

#include <string>

#include "lib/core/error.h"
#include "lib/nn/mlp.h"

namespace tetrion {

ParameterLayout ConvLayout(const EnvSpec& env) {
  if (env.obs.view != "planes" || env.obs.view_floats < kConvPlaneFloats) {
    throw Error(ExitCode::kUsage, "network conv reads view planes, but " + env.name +
                                      " was given view " + env.obs.view +
                                      ": choose --network mlp or --view planes");
  }
  ParameterLayout layout;
  std::int64_t channels = kConvPlanes;
  for (const char* layer : {"conv.1", "conv.2", "conv.3"}) {
    AddParameter(layout, std::string(layer) + ".weight", {kConvChannels, channels, 3, 3});
    AddParameter(layout, std::string(layer) + ".bias", {kConvChannels});
    channels = kConvChannels;
  }
  const std::int64_t flat = kConvChannels * kConvPlaneRows * kConvPlaneColumns;
  AddWideTrunk(layout, flat + env.obs.view_floats - kConvPlaneFloats, env.action.count);
  return layout;
}

}  // namespace tetrion
