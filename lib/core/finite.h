#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace tetrion {

// None is NaN or infinite; true of none at all.
inline bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace tetrion
