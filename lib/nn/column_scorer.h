#pragma once

#include <memory>

#include "lib/nn/network.h"

namespace tetrion {

// Network `columns`: scores every board that an action leads to, from its cells (view
// `afterstates-boards`: ObsSpec::action_floats and board_columns), and the present board's value,
// each with a BoardNet of its own, of config.scorer_units units and twice as many.
//
// Rows of illegal placements are skipped, and equal boards of one state computed once. Forward
// keeps the rows alone: Backward computes again what the rows need that have a slope, a few of 23.
std::unique_ptr<Network> MakeColumnScorer(const NetworkConfig& config, const EnvSpec& env);

}  // namespace tetrion
