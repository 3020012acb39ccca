#include "services/actor/options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"

namespace tetrion {
namespace {

void Declare(ServiceOptions& parser, ActorOptions& o) {
  parser.Add("run-folder", &o.run_folder,
             "folder of the run to join; its endpoints.json says where");
  parser.Add("coordinator", &o.coordinator, "address of the coordinator instead, tcp://host:port");
  parser.Add("name", &o.name, "name in logs and metrics");
  parser.Add("workers", &o.workers, "worker threads, each with its lanes and its ring", 1, 64,
             "threads");
  parser.Add("shm-dir", &o.shm_dir, "folder of the shared regions; empty: the run's");
  parser.Add("http-bind", &o.http_bind,
             "address of /metrics, /livez and /readyz; port 0 picks one");
  parser.Add("policy", &o.policy,
             "run: the learner's newest weights; random: uniform legal actions", {"run", "random"});
  parser.Add("drain-timeout", &o.drain_timeout_s, "longest wait for the workers' last rows", 1,
             3600, "s");
  parser.Add("give-up", &o.give_up_s, "exit with 75 after so long without a coordinator", 1, 86400,
             "s");
  parser.AddLogging(&o.log);
  parser.AddRun(&o.given);
}

constexpr const char* kDescription =
    "Plays episodes: worker threads step environment lanes and write rows into shared-memory "
    "rings. "
    "Joins a running coordinator; may come and go at any time.";

}  // namespace

std::optional<int> ParseActorOptions(int argc, const char* const* argv, ActorOptions& options) {
  ServiceOptions parser("tetrion-actor", "actor", kDescription);
  Declare(parser, options);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return done;
  if (options.run_folder.empty() == options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "say which run to join: --run-folder runs/NAME or --coordinator tcp://host:port");
  }
  return std::nullopt;
}

std::string ActorOptionsMarkdown() {
  ActorOptions options;
  ServiceOptions parser("tetrion-actor", "actor", kDescription);
  Declare(parser, options);
  return parser.Markdown();
}

}  // namespace tetrion
