#include "lib/nn/network.h"

#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/scorer.h"
#include "lib/nn/torch/torch_networks.h"

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

std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config, const EnvSpec& env) {
  TETRION_CHECK(config.max_states > 0 && config.threads > 0, "a network works on something");
  const std::string name = ResolveNetworkName(config.name, env);
  if (name == "scorer") return MakeScorer(config, env);
  if (name == "mlp") return MakeMlp(config, env);
  if (name == "conv") return MakeConv(config, env);
  throw Error(ExitCode::kUsage,
              "there is no network \"" + name + "\": choose auto, scorer, mlp or conv");
}

}  // namespace tetrion
