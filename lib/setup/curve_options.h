#pragma once

#include <string>

#include "lib/run/options.h"
#include "lib/wire/security.h"

namespace tetrion {

// Which keys a process uses, as its user says it: paths only, so that no secret is in a command
// line, a config file or a log. All empty: connections are plain.
struct CurveOptions {
  std::string key;     // NAME.secret of this process
  std::string server;  // NAME.pub of the coordinator; of a process that connects
  std::string allow;   // folder of NAME.pub files; of a process that others connect to
};

// Each service declares the ones it has.
void AddCurveKey(ServiceOptions& parser, CurveOptions& options);
void AddCurveServer(ServiceOptions& parser, CurveOptions& options);
void AddCurveAllow(ServiceOptions& parser, CurveOptions& options);
// After parsing. Throws Error(kUsage) when one of the options lacks its other half: a process with
// half of them would be plain where its user thinks that it is not.
void CheckCurveOptions(const CurveOptions& options);

// Read the files now. Throw Error(kUsage) naming the file and what to do. Without --curve-key,
// --curve-server or --curve-allow the answer is empty or off.
wire::CurveKeys OwnKeysOf(const CurveOptions& options);
wire::ClientSecurity ClientSecurityOf(const CurveOptions& options);
wire::ServerSecurity ServerSecurityOf(const CurveOptions& options);

// Throws Error(kUsage) when `endpoint`, given by `option` ("--bind"), is no address to listen at,
// or is open to other machines without keys, unless --insecure was spelled out.
void RefuseOpenBind(const std::string& option, const std::string& endpoint,
                    const CurveOptions& curve, bool insecure);

}  // namespace tetrion
