#include "services/learner/options.h"

#include "lib/run/options.h"
#include "lib/setup/trainer_threads.h"
#include "services/common/told_folders.h"

namespace tetrion::learner {
namespace {

void Declare(ServiceOptions& parser, LearnerOptions& o) {
  AddMemberOptions(parser, o.member, "longest wait for rings to end at a drain");
  AddHealthCheck(parser, o.health);
  parser.Add(
      "runs-dir", &o.runs_dir,
      "folder of the run folders on this machine, for the run's checkpoints; empty: where the "
      "coordinator has it");
  parser.AddFlag("resume", &o.resume, "go on from the newest checkpoint, if there is one");
  parser.AddFlag("force", &o.force, "with --resume: accept a checkpoint of other run settings");
  parser.Add(
      "threads", &o.threads,
      "threads of the trainer's arithmetic; 0: one per core, at most 8, or 1 for a small network "
      "and conv",
      0, kMostTrainerThreads, "threads");
  AddDeviceChoice(parser, o.replay);
  AddRowsChoice(parser, o.rows);
  AddCurveAllow(parser, o.member.curve);
  parser.Add("checkpoint-every", &o.checkpoint_every_s, "time between checkpoints", 0.1, 86400.0,
             "s");
  parser.Add("keep-checkpoints", &o.keep_checkpoints, "newest checkpoints kept, besides the best",
             1, 1000, "files");
}

constexpr const char* kDescription =
    "Trains: takes rows out of the actors' rings into its replay, updates the networks, publishes "
    "weights, writes checkpoints. One per run.";

}  // namespace

std::optional<int> ParseLearnerOptions(int argc, const char* const* argv, LearnerOptions& options) {
  ServiceOptions parser("tetrion-learner", "learner", kDescription);
  Declare(parser, options);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return done;
  CheckHealthCheck(options.health);
  if (options.health.Wanted()) return std::nullopt;
  CheckMemberOptions(options.member);
  std::string& shm_dir = options.member.shm_dir;
  if (!shm_dir.empty()) shm_dir = ToldShmDir(shm_dir);
  CheckDeviceChoice(options.replay);
  CheckRowsChoice(options.rows, options.member.curve);
  return std::nullopt;
}

}  // namespace tetrion::learner
