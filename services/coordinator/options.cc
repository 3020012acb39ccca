#include "services/coordinator/options.h"

#include <unistd.h>

#include "lib/core/error.h"
#include "lib/run/options.h"
#include "lib/run/value_text.h"
#include "lib/setup/run_setup.h"
#include "services/coordinator/run_files.h"

namespace tetrion::coordinator {

std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options) {
  ServiceOptions declared("tetrion-coordinator", "coordinator",
                          "Hands out episodes and keeps the account of a run.");
  declared.Add("run", &options.run, "name of the new run; without it environment and time");
  declared.Add("runs-dir", &options.runs_dir, "folder that holds the runs");
  declared.Add("resume", &options.resume,
               "go on with this run; settings of learning that are given change");
  declared.Add("init-from", &options.init_from,
               "begin a new run with the weights of another: RUN (its newest checkpoint) or "
               "RUN/best");
  declared.Add("bind", &options.bind,
               "address of the control channel, tcp://host:port (port 0 takes a free one) or "
               "ipc:///path; without it a socket in the run folder, open to this user only");
  declared.AddFlag("insecure", &options.insecure,
                   "allow --bind to an address that other machines reach, without keys");
  declared.Add("http-bind", &options.http_bind,
               "host:port of /metrics, /livez, /readyz and /status; port 0 takes a free one");
  declared.Add("session-lease", &options.session_lease_s,
               "silence after which a member's tokens are handed to others", 0.1, 3600.0, "s");
  declared.Add("heartbeat", &options.heartbeat_s, "interval at which members report", 0.01, 60.0,
               "s");
  declared.Add("stop-after", &options.stop_after,
               "end the run after a time (30s, 2m, 1h) or environment steps (50000000steps)");
  declared.Add("drain-timeout", &options.drain_timeout_s,
               "longest wait for members when the run ends", 0.0, 3600.0, "s");
  declared.Add("shm-dir", &options.shm_dir,
               "folder of the shared-memory rings; without it /dev/shm/tetrion-<uid>");
  declared.AddLogging(&options.log);
  AddRunSettings(declared, &options.given);
  const std::optional<int> code = declared.Parse(argc, argv);
  if (code.has_value()) return code;
  if (options.heartbeat_s * 3 >= options.session_lease_s) {
    throw Error(ExitCode::kUsage,
                "--heartbeat must be below a third of --session-lease, so that "
                "one lost heartbeat does not end a session");
  }
  if (!options.run.empty() && !options.resume.empty()) {
    throw Error(ExitCode::kUsage,
                "--run names a new run and --resume an old one: give one of them");
  }
  if (!options.init_from.empty() && !options.resume.empty()) {
    throw Error(ExitCode::kUsage, "--init-from begins a new run: give it without --resume");
  }
  static_cast<void>(ParseStopAfter(options.stop_after));
  if (!options.bind.empty()) RefuseOpenEndpoint(options.bind, options.insecure);
  if (options.shm_dir.empty()) options.shm_dir = "/dev/shm/tetrion-" + std::to_string(getuid());
  return std::nullopt;
}

}  // namespace tetrion::coordinator
