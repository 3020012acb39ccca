#include "services/learner/options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"

namespace tetrion {
namespace {

void Declare(ServiceOptions& parser, LearnerOptions& o) {
  parser.Add("run-folder", &o.run_folder, "folder of the run; its endpoints.json says where it is");
  parser.Add("coordinator", &o.coordinator, "address of the coordinator instead, tcp://host:port");
  parser.Add("name", &o.name, "name in logs and metrics");
  parser.Add("shm-dir", &o.shm_dir, "folder of the shared regions; empty: the run's");
  parser.Add("http-bind", &o.http_bind,
             "address of /metrics, /livez and /readyz; port 0 picks one");
  parser.AddFlag("resume", &o.resume, "go on from the newest checkpoint, if there is one");
  parser.AddFlag("force", &o.force, "with --resume: accept a checkpoint of other run settings");
  parser.Add("threads", &o.threads, "threads of the trainer's arithmetic", 1, 256, "threads");
  parser.Add("checkpoint-every", &o.checkpoint_every_s, "time between checkpoints", 0.1, 86400.0,
             "s");
  parser.Add("keep-checkpoints", &o.keep_checkpoints, "newest checkpoints kept, besides the best",
             1, 1000, "files");
  parser.Add("drain-timeout", &o.drain_timeout_s, "longest wait for rings to end at a drain", 1,
             3600, "s");
  parser.Add("give-up", &o.give_up_s, "exit with 75 after so long without a coordinator", 1, 86400,
             "s");
  parser.AddLogging(&o.log);
  parser.AddRun(&o.given);
}

constexpr const char* kDescription =
    "Trains: takes rows out of the actors' rings into its replay, updates the networks, publishes "
    "weights, writes checkpoints. One per run.";

}  // namespace

std::optional<int> ParseLearnerOptions(int argc, const char* const* argv, LearnerOptions& options) {
  ServiceOptions parser("tetrion-learner", "learner", kDescription);
  Declare(parser, options);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return done;
  if (options.run_folder.empty() == options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "say which run to train: --run-folder runs/NAME or --coordinator tcp://host:port");
  }
  return std::nullopt;
}

std::string LearnerOptionsMarkdown() {
  LearnerOptions options;
  ServiceOptions parser("tetrion-learner", "learner", kDescription);
  Declare(parser, options);
  return parser.Markdown();
}

}  // namespace tetrion
