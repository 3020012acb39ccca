#include "services/coordinator/options.h"

#include <unistd.h>

#include "lib/core/error.h"
#include "lib/run/options.h"
#include "services/coordinator/run_files.h"

namespace tetrion::coordinator {

std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options) {
  ServiceOptions declared("tetrion-coordinator", "coordinator",
                          "Hands out episodes and keeps the account of a run.");
  AddRunChoice(declared, options);
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
  declared.Add("drain-timeout", &options.drain_timeout_s,
               "longest wait for members when the run ends", 0.0, 3600.0, "s");
  declared.AddLogging(&options.log);
  const std::optional<int> code = declared.Parse(argc, argv);
  if (code.has_value()) return code;
  if (options.heartbeat_s * 3 >= options.session_lease_s) {
    throw Error(ExitCode::kUsage,
                "--heartbeat must be below a third of --session-lease, so that "
                "one lost heartbeat does not end a session");
  }
  CheckRunChoice(options);
  if (!options.bind.empty()) RefuseOpenEndpoint(options.bind, options.insecure);
  if (options.shm_dir.empty()) options.shm_dir = "/dev/shm/tetrion-" + std::to_string(getuid());
  return std::nullopt;
}

}  // namespace tetrion::coordinator
