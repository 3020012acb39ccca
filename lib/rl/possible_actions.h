#pragma once

#include <cstdint>
#include <span>

namespace tetrion {

// Throws Error(kTryAgain) when one of the actions is none of the environment's `count`: rows that a
// device copies by itself can change after ingest has checked them.
void CheckActions(std::span<const std::int32_t> actions, int count);

}  // namespace tetrion
