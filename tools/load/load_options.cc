#include "tools/load/load_options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"

namespace tetrion {
namespace {

constexpr int kMaxSessions = 30'000;  // two places each in ZeroMQ's table of 65,535

}  // namespace

std::optional<int> ParseLoadOptions(int argc, const char* const* argv, LoadOptions& options) {
  ServiceOptions parser(
      "tetrion-load", "load",
      "Loads a coordinator with sessions of actors that play nothing. Prints a line of JSON each "
      "second; exit status 75 when sessions were fenced.");
  parser.Add("run-folder", &options.run_folder,
             "folder of the run; its endpoints.json says where the coordinator is");
  parser.Add("coordinator", &options.coordinator,
             "address of the coordinator instead, tcp://host:port or ipc:///path");
  parser.Add("sessions", &options.sessions, "members to play", 1, kMaxSessions);
  parser.Add("seconds", &options.seconds,
             "how long they stay; 0: until the run ends or a signal comes", 0, 86400, "s");
  parser.AddFlag("grants", &options.grants, "each session also takes a range of tokens");
  parser.Add("log-level", &options.log_level, "least severe lines on stderr",
             {"info", "warn", "error"});
  if (const std::optional<int> code = parser.Parse(argc, argv)) return code;
  if (options.run_folder.empty() == options.coordinator.empty()) {
    throw Error(ExitCode::kUsage,
                "say which coordinator: --run-folder runs/NAME or --coordinator tcp://host:port");
  }
  return std::nullopt;
}

}  // namespace tetrion
