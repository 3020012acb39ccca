#include "services/actor/options.h"

#include "lib/run/options.h"

namespace tetrion {
namespace {

void Declare(ServiceOptions& parser, ActorOptions& o) {
  AddMemberOptions(parser, o.member, "longest wait for the workers' last rows");
  parser.Add("workers", &o.workers, "worker threads, each with its lanes and its ring", 1, 64,
             "threads");
  parser.Add("policy", &o.policy,
             "run: the learner's newest weights; random: uniform legal actions", {"run", "random"});
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
  CheckMemberOptions(options.member);
  return std::nullopt;
}

std::string ActorOptionsMarkdown() {
  ActorOptions options;
  ServiceOptions parser("tetrion-actor", "actor", kDescription);
  Declare(parser, options);
  return parser.Markdown();
}

}  // namespace tetrion
