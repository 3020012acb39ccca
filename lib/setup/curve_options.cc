#include "lib/setup/curve_options.h"

#include "lib/core/address.h"
#include "lib/core/error.h"

namespace tetrion {

void AddCurveKey(ServiceOptions& parser, CurveOptions& options) {
  parser.Add("curve-key", &options.key,
             "file with this process's secret key, NAME.secret of ./tetrion keygen; connections "
             "are encrypted then");
}

void AddCurveServer(ServiceOptions& parser, CurveOptions& options) {
  parser.Add("curve-server", &options.server,
             "file with the coordinator's public key, NAME.pub; no other coordinator is believed");
}

void AddCurveAllow(ServiceOptions& parser, CurveOptions& options) {
  parser.Add("curve-allow", &options.allow,
             "folder with the NAME.pub of every process that may connect; read again when it "
             "changes");
}

void CheckCurveOptions(const CurveOptions& options) {
  if (options.key.empty() && !(options.server.empty() && options.allow.empty())) {
    throw Error(ExitCode::kUsage,
                std::string(options.server.empty() ? "--curve-allow" : "--curve-server") +
                    " needs --curve-key NAME.secret, this process's own key: "
                    "./tetrion keygen makes one");
  }
  if (!options.key.empty() && options.server.empty() && options.allow.empty()) {
    throw Error(ExitCode::kUsage,
                "--curve-key alone encrypts nothing: give --curve-server NAME.pub where this "
                "process connects, --curve-allow FOLDER where others connect to it");
  }
}

wire::CurveKeys OwnKeysOf(const CurveOptions& options) {
  if (options.key.empty()) return {};
  return wire::CurveKeys::ReadSecret(options.key);
}

wire::ClientSecurity ClientSecurityOf(const CurveOptions& options) {
  if (options.server.empty()) return {};
  return {.own = wire::CurveKeys::ReadSecret(options.key),
          .server_key = wire::ReadPublicKey(options.server)};
}

wire::ServerSecurity ServerSecurityOf(const CurveOptions& options) {
  if (options.allow.empty()) return {};
  return wire::ServerSecurity::Make(wire::CurveKeys::ReadSecret(options.key), options.allow);
}

void RefuseOpenBind(const std::string& option, const std::string& endpoint,
                    const CurveOptions& curve, bool insecure) {
  CheckEndpoint(option, endpoint, TcpUse::kListen);
  if (endpoint.starts_with("ipc://@")) {
    throw Error(ExitCode::kUsage,
                option + " " + endpoint +
                    " would be open to every user of this machine: give the socket a path, "
                    "ipc:///path/control.sock");
  }
  const std::size_t scheme = endpoint.find("://");
  const std::string host = endpoint.substr(scheme == std::string::npos ? 0 : scheme + 3);
  const bool local = endpoint.starts_with("ipc://") || IsLoopback(host);
  if (local || insecure || !curve.allow.empty()) return;
  throw Error(ExitCode::kUsage,
              option + " " + endpoint +
                  " is open to other machines and has no keys: make some with ./tetrion keygen "
                  "and give --curve-key and --curve-allow, or bind tcp://127.0.0.1:0, or spell "
                  "out --insecure on a network you trust");
}

}  // namespace tetrion
