#include "services/common/health_check.h"

#include <cstdio>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/http/http_get.h"

namespace tetrion {
namespace {

constexpr const char* kCommand = "healthcheck";
constexpr int kTimeoutMs = 600;  // of the whole question

}  // namespace

void AddHealthCheck(ServiceOptions& parser, HealthCheck& check) {
  parser.AddPositional("command", &check.command,
                       "healthcheck: ask the service that runs here whether it is ready, instead "
                       "of running one; exit status 0 or 1");
  parser.AddFlag("live", &check.live, "healthcheck: ask whether it lives (/livez), not /readyz");
}

void CheckHealthCheck(const HealthCheck& check) {
  if (check.Wanted() && check.command != kCommand) {
    throw Error(ExitCode::kUsage,
                "unexpected argument '" + check.command + "': the only command is " + kCommand);
  }
  if (check.live && !check.Wanted()) {
    throw Error(ExitCode::kUsage, std::string("--live belongs to the command ") + kCommand);
  }
}

int AskHealth(const HealthCheck& check, const std::string& http_bind) {
  if (http_bind.ends_with(":0")) {
    std::fprintf(stderr,
                 "%s: the port of --http-bind %s is known to the service alone: give service and "
                 "healthcheck a fixed one, TETRION_HTTP_BIND=0.0.0.0:9464\n",
                 kCommand, http_bind.c_str());
    return 1;
  }
  try {
    (void)HttpGet(FromHere(http_bind), check.live ? "/livez" : "/readyz", kTimeoutMs);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", kCommand, error.what());
    return 1;
  }
  return 0;
}

}  // namespace tetrion
