#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/frame/specs.h"
#include "lib/nn/network.h"
#include "lib/policy/policy.h"

namespace tetrion {

struct NetworkPolicyConfig {
  std::string network = "auto";     // as NetworkConfig::name
  int scorer_units = kScorerUnits;  // as NetworkConfig's
  Precision precision = Precision::kF32;
  std::uint64_t seed = 1;  // initial weights and, with token and step, every action drawn
  bool blank = false;      // as NetworkConfig's: no Act before LoadWeights
  bool greedy = false;     // the most probable action instead of a draw
  int max_lanes = 1;       // most lanes of one Act
};

// A policy that runs a network of lib/nn on one thread: records -> view -> masked softmax -> draw.
// Every buffer is allocated here. Throws Error(kUsage) when the network does not fit the
// environment.
std::unique_ptr<Policy> MakeNetworkPolicy(const NetworkPolicyConfig& config, const EnvSpec& env);

}  // namespace tetrion
