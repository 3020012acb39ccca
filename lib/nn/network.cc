#include "lib/nn/network.h"

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/nn/scorer.h"
#include "lib/nn/torch/torch_networks.h"

namespace tetrion {

std::size_t Network::AddParameter(const std::string& name, std::vector<std::int64_t> shape) {
  ParameterInfo info;
  info.name = name;
  info.offset = layout_.empty() ? 0 : layout_.back().offset + layout_.back().size;
  info.size = 1;
  for (std::int64_t extent : shape) info.size *= static_cast<std::size_t>(extent);
  info.shape = std::move(shape);
  layout_.push_back(info);
  return info.offset;
}

void Network::AllocateBuffers(bool training) {
  TETRION_CHECK(!layout_.empty(), "a network has parameters");
  const std::size_t floats = layout_.back().offset + layout_.back().size;
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
