#pragma once

#include <string>

#include "lib/run/options.h"
#include "lib/setup/curve_options.h"

namespace tetrion::learner {

// Where the learner takes the rows of actors on other hosts, as its user says it.
struct RowsChoice {
  std::string bind;       // "tcp://0.0.0.0:9001"; empty: no remote actors
  std::string advertise;  // "host:port" told to actors; empty: the bound address
  int silence_s = 60;     // of an actor, until its streams end
  bool insecure = false;  // without keys, also where other machines reach it
};

void AddRowsChoice(ServiceOptions& parser, RowsChoice& choice);
// After parsing, `curve` being the learner's. Throws Error(kUsage).
void CheckRowsChoice(const RowsChoice& choice, const CurveOptions& curve);

// The "host:port" that actors are told, of a socket bound to `endpoint`. An address that means
// every interface becomes this host's name.
std::string AdvertisedRows(const RowsChoice& choice, const std::string& endpoint);

}  // namespace tetrion::learner
