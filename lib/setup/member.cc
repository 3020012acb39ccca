#include "lib/setup/member.h"

#include "lib/core/address.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/text_forms.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

// Without an address while the run's endpoints are not written yet.
wire::CoordinatorPlace PlaceOf(const std::string& coordinator, const std::string& run_folder) {
  if (!coordinator.empty()) return coordinator;
  try {
    const Endpoints told = ReadEndpoints(RunFolder::At(run_folder).endpoints_json());
    return {told.control, told.run_id, told.run};
  } catch (const Error& error) {
    if (error.code() != ExitCode::kTryAgain) throw;
    wire::CoordinatorPlace unknown{std::string()};
    unknown.why_unknown = error.what();
    return unknown;
  }
}

}  // namespace

void AddMemberOptions(ServiceOptions& parser, MemberOptions& o, const std::string& drain_help) {
  parser.Add("run-folder", &o.run_folder, "folder of the run; its endpoints.json says where it is");
  parser.Add("coordinator", &o.coordinator,
             "address of the coordinator instead, tcp://host:port or ipc:///path");
  AddCurveKey(parser, o.curve);
  AddCurveServer(parser, o.curve);
  parser.Add("name", &o.name, "name in logs and metrics");
  AddShmDir(parser, &o.shm_dir, "the run's");
  parser.Add("http-bind", &o.http_bind,
             "address of /metrics, /livez and /readyz; port 0 picks one");
  parser.Add("http-advertise", &o.http_advertise,
             "host or host:port that scrapers are told instead; empty: what is bound, or this "
             "host's name where that is every address, or none where that is 127.0.0.1 and "
             "--coordinator is on another host");
  parser.Add("drain-timeout", &o.drain_timeout_s, drain_help, 1, 3600, "s");
  parser.Add("give-up", &o.give_up_s, "exit with 75 after so long without a coordinator", 1, 86400,
             "s");
  parser.AddLogging(&o.log);
  AddRunSettings(parser, &o.given);
}

void CheckMemberOptions(const MemberOptions& options) {
  if (!options.run_folder.empty() && !options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "--run-folder and --coordinator both say which run to join: give one of the two");
  }
  if (options.run_folder.empty() && options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "say which run to join: --run-folder runs/NAME or --coordinator tcp://host:port");
  }
  CheckEndpoint("--coordinator", options.coordinator, TcpUse::kConnect);
  if (!IsName(options.name)) {
    throw Error(
        ExitCode::kUsage,
        "--name may hold 1 to 64 letters, digits, '.', '_' and '-': it becomes part of file "
        "names, labels and JSON");
  }
  CheckCurveOptions(options.curve);
}

wire::SessionLink::Config LinkConfigOf(const MemberOptions& options) {
  return {.endpoint = [coordinator = options.coordinator,
                       folder = options.run_folder] { return PlaceOf(coordinator, folder); },
          .give_up_ns = options.give_up_s * kNanosPerSecond,
          .security = ClientSecurityOf(options.curve)};
}

std::vector<wire::GivenSetting> GivenOf(const MemberOptions& options) {
  std::vector<wire::GivenSetting> given;
  for (const Setting& setting : options.given) {
    given.push_back({.key = setting.key, .value = setting.value});
  }
  return given;
}

void CheckSameSettings(const std::string& first, const std::string& now) {
  if (first == now) return;
  throw Error(ExitCode::kTryAgain,
              "the run was resumed with other settings: start this member again to have them");
}

void SetUpMemberLogging(const MemberOptions& options, const std::string& run) {
  LogConfig log = options.log;
  log.run = run;
  SetUpLogging(log);
}

}  // namespace tetrion
