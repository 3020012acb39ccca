#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/run/options.h"
#include "lib/run/run_config.h"
#include "lib/setup/curve_options.h"
#include "lib/wire/session_link.h"

namespace tetrion {

// What every member of a run, actor or learner, is told by its user: where the run is and how to
// join.
struct MemberOptions {
  std::string run_folder;
  std::string coordinator;
  std::string name;
  std::string shm_dir;  // empty: the run's
  std::string http_bind = "127.0.0.1:0";
  std::string http_advertise;  // host[:port] told to the coordinator; empty: what is bound
  int drain_timeout_s = 10;
  int give_up_s = 120;
  CurveOptions curve;
  LogConfig log;
  std::vector<Setting> given;  // run settings the user insists on; the coordinator checks them
};

// Declares them all, the run's settings included. `drain_help`: what the drain time-out waits for.
void AddMemberOptions(ServiceOptions& parser, MemberOptions& options,
                      const std::string& drain_help);
// After parsing. Throws Error(kUsage) unless exactly one way to the run is given, address and name
// are such, and the keys are whole.
void CheckMemberOptions(const MemberOptions& options);

// How the member's session reaches the coordinator: a fixed address, or endpoints.json of the run
// folder, read anew for every connection and waited for while it is not there. Reads the keys:
// throws Error(kUsage).
wire::SessionLink::Config LinkConfigOf(const MemberOptions& options);
std::vector<wire::GivenSetting> GivenOf(const MemberOptions& options);
// A member works with the settings that it was first told, in canonical text. Throws
// Error(kTryAgain) when the run was resumed with others: started again, the member has those.
void CheckSameSettings(const std::string& first, const std::string& now);
// Logging once the run's name is known.
void SetUpMemberLogging(const MemberOptions& options, const std::string& run);

}  // namespace tetrion
