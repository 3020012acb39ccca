#include "services/learner/rows_endpoint.h"

#include <unistd.h>

#include <string_view>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"

namespace tetrion::learner {
namespace {

constexpr std::string_view kScheme = "tcp://";

// Rows are encrypted exactly when the control channel is, which tells actors the learner's key.
void CheckKeys(const RowsChoice& choice, const CurveOptions& curve) {
  if (!curve.allow.empty() && curve.server.empty()) {
    throw Error(ExitCode::kUsage,
                "--curve-allow needs --curve-server NAME.pub as well: actors learn this learner's "
                "key from the coordinator");
  }
  if (choice.bind.empty()) return;
  if (!curve.key.empty() && curve.allow.empty()) {
    throw Error(ExitCode::kUsage,
                "--curve-key without --curve-allow would leave rows plain: give --curve-allow "
                "FOLDER, with the NAME.pub of every actor, or leave --rows-bind out");
  }
  RefuseOpenBind("--rows-bind", choice.bind, curve, choice.insecure);
}

}  // namespace

void AddRowsChoice(ServiceOptions& parser, RowsChoice& choice) {
  parser.Add("rows-bind", &choice.bind,
             "address where actors of other hosts send their rows, tcp://0.0.0.0:9001; empty: only "
             "actors that share the folder of the shared regions");
  parser.Add("rows-advertise", &choice.advertise,
             "host:port told to those actors; empty: the bound one, with this host's name for an "
             "address that means every interface");
  parser.Add("remote-silence", &choice.silence_s,
             "silence after which an actor of another host counts as dead; 5 s are enough once its "
             "session has ended",
             2, 86400, "s");
  parser.AddFlag("insecure", &choice.insecure,
                 "allow --rows-bind to an address that other machines reach, without keys");
}

void CheckRowsChoice(const RowsChoice& choice, const CurveOptions& curve) {
  if (!choice.bind.empty() && choice.bind.rfind(kScheme, 0) != 0) {
    throw Error(ExitCode::kUsage, "--rows-bind is '" + choice.bind +
                                      "': it must be like tcp://0.0.0.0:9001, since the actors "
                                      "that share this host's memory need no address");
  }
  CheckKeys(choice, curve);
  if (choice.advertise.empty()) return;
  if (choice.bind.empty()) {
    throw Error(ExitCode::kUsage,
                "--rows-advertise says where remote actors find the learner, but it takes none: "
                "give --rows-bind tcp://0.0.0.0:9001 as well");
  }
  if (!IsHostPort(choice.advertise)) {
    throw Error(ExitCode::kUsage,
                "--rows-advertise is '" + choice.advertise + "': it must be host:port");
  }
}

std::string AdvertisedRows(const RowsChoice& choice, const std::string& endpoint) {
  if (!choice.advertise.empty()) return choice.advertise;
  const std::string bound = endpoint.substr(kScheme.size());
  const std::size_t colon = bound.rfind(':');
  const std::string host = bound.substr(0, colon);
  if (host != "0.0.0.0" && host != "[::]" && host != "*") return bound;
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) {
    const std::string named = name + bound.substr(colon);
    if (IsHostPort(named)) return named;
  }
  throw Error(ExitCode::kUsage,
              "this host has no name to tell remote actors: give --rows-advertise host:port");
}

}  // namespace tetrion::learner
