#include "lib/nn/mlp.h"

#include <string>

namespace tetrion {

MlpShape MlpShapeOf(const ObsSpec& obs) {
  return obs.view == "vector" ? MlpShape::kSmall : MlpShape::kWide;
}

ParameterLayout MlpLayout(const EnvSpec& env) {
  ParameterLayout layout;
  if (MlpShapeOf(env.obs) == MlpShape::kWide) {
    AddWideTrunk(layout, env.obs.view_floats, env.action.count);
    return layout;
  }
  for (const char* part : {"policy", "value"}) {
    const std::string name = part;
    AddLinear(layout, name + ".1", kSmallMlpUnits, env.obs.view_floats);
    AddLinear(layout, name + ".2", kSmallMlpUnits, kSmallMlpUnits);
    AddLinear(layout, name + ".head", name == "policy" ? env.action.count : 1, kSmallMlpUnits);
  }
  return layout;
}

void AddWideTrunk(ParameterLayout& layout, std::int64_t in, std::int64_t actions) {
  std::int64_t width = in;
  for (const char* layer : {"trunk.1", "trunk.2"}) {
    const std::string name = layer;
    AddLinear(layout, name, kWideMlpUnits, width);
    AddParameter(layout, name + ".norm.scale", {kWideMlpUnits});
    AddParameter(layout, name + ".norm.bias", {kWideMlpUnits});
    width = kWideMlpUnits;
  }
  AddLinear(layout, "policy.head", actions, kWideMlpUnits);
  AddLinear(layout, "value.head", 1, kWideMlpUnits);
}

}  // namespace tetrion
