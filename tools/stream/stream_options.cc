#include "tools/stream/stream_options.h"

#include <charconv>
#include <cmath>

#include "lib/core/error.h"
#include "lib/run/options.h"

namespace tetrion {
namespace {

constexpr char kCheckpoint[] = "checkpoint:";

std::array<float, 4> ParseWeights(const std::string& text) {
  std::array<float, 4> weights;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto [rest, failure] = std::from_chars(at, end, weights[i]);
    const bool last = i + 1 == weights.size();
    const bool separated = last ? rest == end : rest != end && *rest == ',';
    if (failure != std::errc() || !std::isfinite(weights[i]) || !separated) {
      throw Error(ExitCode::kUsage, "--weights '" + text +
                                        "': give four finite numbers with commas between, "
                                        "as 0.1,0.5,2,2");
    }
    at = rest + (last ? 0 : 1);
  }
  return weights;
}

void Check(const StreamOptions& options) {
  const std::string& command = options.command;
  if (command != "kernel" && command != "host" && command != "inspect" && command != "layout") {
    throw Error(ExitCode::kUsage,
                "unknown command '" + command + "': use kernel, host, inspect or layout");
  }
  if (command != "layout" && options.region.empty()) {
    throw Error(ExitCode::kUsage,
                "no region: give --region FILE, for instance "
                "--region /dev/shm/stream");
  }
  const std::string& policy = options.policy;
  if (policy != "linear" && policy != "random" &&
      !(policy.starts_with(kCheckpoint) && policy.size() > sizeof(kCheckpoint) - 1)) {
    throw Error(ExitCode::kUsage,
                "--policy '" + policy + "': use linear, random or checkpoint:RUN");
  }
}

}  // namespace

std::optional<int> ParseStreamOptions(int argc, const char* const* argv, StreamOptions& options) {
  std::string weights;
  ServiceOptions parser(
      "tetrion-stream", "",
      "One end of a streamed region (docs/formats/region_v2.md) shared with another program: the "
      "kernel holds the policy, the host the environment; inspect looks at a region, layout prints "
      "its documentation.");
  parser.AddPositional("command", &options.command, "kernel, host, inspect or layout",
                       /*required=*/true);
  parser.Add("region", &options.region, "file or device that both ends map");
  parser.Add("size", &options.size_mib, "of a region that the kernel makes, and of one in a device",
             1, 2, "MiB");
  parser.Add("wait", &options.wait_s, "longest wait for the other end to appear", 0, 86400, "s");
  parser.Add("peer-timeout", &options.peer_timeout_ms, "give the other end up after so long", 10,
             3'600'000, "ms");
  parser.AddFlag("no-stream", &options.no_stream, "step by command instead of the stream rings");
  parser.AddFlag("stay", &options.stay, "go on when the other end is lost or in error");
  parser.Add("spins", &options.spins, "looks before yielding the core; -1: as the machine wants it",
             -1, 100'000'000);
  parser.Add("doorbell-every", &options.doorbell_every,
             "ring every so many entries; 0: when a ring becomes non-empty", 0, 63, "entries");
  parser.Add("policy", &options.policy, "kernel: linear, random or checkpoint:RUN");
  parser.Add("runs-dir", &options.runs_dir, "kernel: folder that holds the runs");
  parser.Add("episodes", &options.episodes, "kernel: end after so many; 0: no end", 0, INT64_MAX,
             "episodes");
  parser.Add("steps", &options.steps,
             "kernel: end with the episode in which so many are reached; 0: no end", 0, INT64_MAX,
             "steps");
  parser.Add("env", &options.env, "host: environment", {"cartpole"});
  parser.Add("max-steps", &options.max_steps, "host: longest episode", 1, 1'000'000, "steps");
  parser.Add("seed", &options.seed, "of the episodes (host) or of random actions (kernel)", 0,
             UINT64_MAX);
  parser.Add("weights", &weights,
             "linear policy a,b,c,d: the host uploads it, a kernel uses it if the host has none");
  parser.Add("last", &options.last, "inspect: entries shown of each ring", 0, 1023, "entries");
  parser.ReadVariablesOf({"runs-dir"});
  if (const std::optional<int> code = parser.Parse(argc, argv)) return code;
  options.weights_given = parser.Given("weights");
  if (options.weights_given) options.weights = ParseWeights(weights);
  Check(options);
  return std::nullopt;
}

}  // namespace tetrion
