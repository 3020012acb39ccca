#pragma once

#include "lib/envs/registry.h"

namespace tetrion {

// Tetris played by key presses, and by placements.
EnvEntry TetrisEntry();
EnvEntry TetrisPlacementEntry();

}  // namespace tetrion
