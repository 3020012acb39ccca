#include "lib/setup/run_choice.h"

#include "lib/core/error.h"
#include "lib/run/value_text.h"
#include "lib/setup/run_setup.h"

namespace tetrion {

void AddRunChoice(ServiceOptions& parser, RunChoice& choice) {
  parser.Add("run", &choice.run, "name of the new run; empty: environment and time");
  parser.Add(
      "resume", &choice.resume,
      "go on with this run; latest is the newest; settings of learning that are given change");
  parser.Add("init-from", &choice.init_from,
             "begin the new run with the weights of another: RUN or RUN/newest (its newest "
             "checkpoint), or RUN/best");
  parser.Add("stop-after", &choice.stop_after,
             "end by itself: 30s, 2m, 1h or 50000000steps; empty: never");
  parser.Add("runs-dir", &choice.runs_dir, "folder of the run folders");
  AddShmDir(parser, &choice.shm_dir, "/dev/shm/tetrion-<uid>");
  AddRunSettings(parser, &choice.given);
}

void CheckRunChoice(const RunChoice& choice) {
  const auto refuse = [&](const char* option, const char* does) {
    throw Error(ExitCode::kUsage, std::string(option) + " " + does +
                                      " a new run, --resume goes on with an old one: give one of "
                                      "them");
  };
  if (!choice.run.empty() && !choice.resume.empty()) refuse("--run", "starts");
  if (!choice.init_from.empty() && !choice.resume.empty()) refuse("--init-from", "begins");
  static_cast<void>(ParseStopAfter(choice.stop_after));
}

}  // namespace tetrion
