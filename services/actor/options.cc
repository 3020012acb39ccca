#include "services/actor/options.h"

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/run/options.h"
#include "lib/run/run_config.h"
#include "services/common/told_folders.h"

namespace tetrion::actor {
namespace {

void Declare(ServiceOptions& parser, ActorOptions& o) {
  AddMemberOptions(parser, o.member, "longest wait for the workers' last rows");
  AddHealthCheck(parser, o.health);
  parser.Add("workers", &o.workers, "worker threads, each with its lanes and its ring", 1,
             kMostWorkers, "threads");
  parser.Add("policy", &o.policy,
             "run: the learner's newest weights; random: uniform legal actions", {"run", "random"});
  AddInference(parser, o);
  AddGroups(parser, o);
  parser.Add("rows", &o.rows,
             "how rows reach the learner: shm, through the folder that both share; tcp, over the "
             "network to its --rows-bind; auto, tcp when --coordinator names another host",
             {"auto", "shm", "tcp"});
  parser.Add("compress", &o.compress, "how rows are packed on the network", {"none", "zstd"});
}

void ChooseRows(ActorOptions& o) {
  if (o.rows == "auto") o.rows = !o.Streamed() && IsElsewhere(o.member.coordinator) ? "tcp" : "shm";
  if (o.rows == "tcp" && o.Streamed()) {
    throw Error(ExitCode::kUsage,
                "--inference streamed needs the learner's shared memory, --rows tcp has none: give "
                "one of them");
  }
  if (o.rows != "tcp" && o.compress != "none") {
    throw Error(ExitCode::kUsage, "--compress " + o.compress +
                                      " is for rows on the network: give --rows tcp, too, or leave "
                                      "it out");
  }
}

constexpr const char* kDescription =
    "Plays episodes: worker threads step environment lanes and write rows into rings, which the "
    "learner reads from shared memory or over the network. "
    "Joins a running coordinator; may come and go at any time.";

void CheckRings(const ActorOptions& o) {
  const int rings = o.workers * o.GroupsOfWorker();
  if (rings <= kMaxWorkersOfRun) return;
  throw Error(ExitCode::kUsage, "--workers " + std::to_string(o.workers) + " times --groups " +
                                    std::to_string(o.groups) + " are " + std::to_string(rings) +
                                    " rings, a run has at most " +
                                    std::to_string(kMaxWorkersOfRun) +
                                    ": give fewer workers or groups");
}

}  // namespace

std::optional<int> ParseActorOptions(int argc, const char* const* argv, ActorOptions& options) {
  ServiceOptions parser("tetrion-actor", "actor", kDescription);
  Declare(parser, options);
  if (const std::optional<int> done = parser.Parse(argc, argv)) return done;
  CheckHealthCheck(options.health);
  if (options.health.Wanted()) return std::nullopt;
  CheckMemberOptions(options.member);
  std::string& shm_dir = options.member.shm_dir;
  if (!shm_dir.empty()) shm_dir = ToldShmDir(shm_dir);
  if (options.Streamed() && options.policy != "run") {
    throw Error(ExitCode::kUsage,
                "--policy " + options.policy +
                    " is a worker's own, with --inference streamed the learner decides: give one "
                    "of them");
  }
  CheckRings(options);
  ChooseRows(options);
  return std::nullopt;
}

}  // namespace tetrion::actor
