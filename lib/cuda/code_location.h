#pragma once

namespace tetrion::cuda {

// Where a call stands in the source. A default argument `= CodeLocation::Here()` is the caller's
// place; std::source_location would be that, too, but clang 14 cannot read it.
struct CodeLocation {
  const char* file = "";
  int line = 0;

  static constexpr CodeLocation Here(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace tetrion::cuda
