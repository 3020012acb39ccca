#include "services/coordinator/options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"
#include "lib/shm/shm_dir.h"
#include "services/common/told_folders.h"

namespace tetrion::coordinator {

std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options) {
  ServiceOptions declared("tetrion-coordinator", "coordinator",
                          "Hands out episodes and keeps the account of a run.");
  AddRunChoice(declared, options);
  declared.AddFlag("or-resume", &options.or_resume,
                   "with --run: go on with the run of that name if there is one, so that a restart "
                   "needs no other command; a time of --stop-after is then the whole run's");
  declared.Add("bind", &options.bind,
               "address of the control channel, tcp://host:port (port 0 takes a free one) or "
               "ipc:///path; without it a socket in the run folder, open to this user only");
  declared.AddFlag("insecure", &options.insecure,
                   "allow --bind to an address that other machines reach, without keys");
  declared.Add(
      "advertise", &options.advertise,
      "host or host:port that members are told instead of --bind's; empty: what is bound, or "
      "this host's name where that is every address");
  AddCurveKey(declared, options.curve);
  AddCurveAllow(declared, options.curve);
  declared.Add("http-bind", &options.http_bind,
               "host:port of /metrics, /livez, /readyz and /status; port 0 takes a free one");
  declared.Add("http-advertise", &options.http_advertise,
               "the same for --http-bind: what scrapers are told");
  declared.Add("session-lease", &options.session_lease_s,
               "silence after which a member's tokens are handed to others", 0.1, 3600.0, "s");
  declared.Add("heartbeat", &options.heartbeat_s, "interval at which members report", 0.01, 60.0,
               "s");
  declared.Add("drain-timeout", &options.drain_timeout_s,
               "longest wait for members when the run ends", 0.0, 3600.0, "s");
  AddHealthCheck(declared, options.health);
  declared.AddLogging(&options.log);
  const std::optional<int> code = declared.Parse(argc, argv);
  if (code.has_value()) return code;
  CheckHealthCheck(options.health);
  if (options.health.Wanted()) return std::nullopt;
  if (options.heartbeat_s * 3 >= options.session_lease_s) {
    throw Error(ExitCode::kUsage,
                "--heartbeat must be below a third of --session-lease, so that "
                "one lost heartbeat does not end a session");
  }
  CheckRunChoice(options);
  if (options.or_resume && options.run.empty()) {
    throw Error(ExitCode::kUsage, "--or-resume is of use only with --run NAME");
  }
  CheckCurveOptions(options.curve);
  if (!options.bind.empty()) {
    RefuseOpenBind("--bind", options.bind, options.curve, options.insecure);
  }
  if (options.shm_dir.empty()) options.shm_dir = DefaultShmDir();
  options.shm_dir = ToldShmDir(options.shm_dir);
  return std::nullopt;
}

}  // namespace tetrion::coordinator
