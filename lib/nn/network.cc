#include "lib/nn/network.h"

#include <utility>

#include "lib/core/check.h"

namespace tetrion {

std::size_t Network::AddParameter(const std::string& name, std::vector<std::int64_t> shape) {
  return tetrion::AddParameter(layout_, name, std::move(shape));
}

void Network::AllocateBuffers(bool training) {
  TETRION_CHECK(!layout_.empty(), "a network has parameters");
  const std::size_t floats = FloatsOf(layout_);
  parameters_.assign(floats, 0.0F);
  gradients_.assign(training ? floats : 0, 0.0F);
}

std::string ResolveNetworkName(const std::string& name, const EnvSpec& env) {
  return name == "auto" ? env.obs.network : name;
}

}  // namespace tetrion
