#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/no_tensor_library.h"
#include "lib/nn/column_scorer.h"
#include "lib/nn/mlp_network.h"
#include "lib/nn/network.h"
#include "lib/nn/scorer.h"
#if defined(TETRION_WITH_TORCH)
#include "lib/nn/torch/torch_networks.h"
#endif

namespace tetrion {

std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config, const EnvSpec& env) {
  TETRION_CHECK(config.max_states > 0 && config.threads > 0, "a network works on something");
  const std::string name = ResolveNetworkName(config.name, env);
  if (name == "scorer") return MakeScorer(config, env);
  if (name == "columns") return MakeColumnScorer(config, env);
  if (name == "mlp") return MakeMlp(config, env);
#if defined(TETRION_WITH_TORCH)
  if (name == "conv") return MakeConv(config, env);
#else
  if (name == "conv") throw Error(ExitCode::kUsage, NoTensorLibrary("network " + name));
#endif
  throw Error(ExitCode::kUsage,
              "there is no network \"" + name + "\": choose auto, scorer, columns, mlp or conv");
}

}  // namespace tetrion
