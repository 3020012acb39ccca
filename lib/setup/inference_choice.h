#pragma once

#include <string>

#include "lib/run/options.h"

namespace tetrion {

inline constexpr int kMostWorkers = 64;  // worker threads of an actor

// Who decides for an actor's lanes; declared once for the actor, for `up` and for `doctor`.
struct InferenceChoice {
  std::string inference = "local";  // local, streamed
  int groups = 2;                   // streamed: lane groups of a worker thread

  bool Streamed() const { return inference == "streamed"; }
  // Lane groups of a worker thread, each with its ring and its replay slot.
  int GroupsOfWorker() const { return Streamed() ? groups : 1; }
};

void AddInference(ServiceOptions& parser, InferenceChoice& choice);
void AddGroups(ServiceOptions& parser, InferenceChoice& choice);

}  // namespace tetrion
