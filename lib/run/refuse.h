// The end of a program that was called or configured wrongly.
#pragma once

#include <string>

#include "lib/core/error.h"

namespace tetrion {

// Throws Error of kUsage; the message says what is wrong, where, and what to do.
[[noreturn]] inline void Refuse(const std::string& message) {
  throw Error(ExitCode::kUsage, message);
}

}  // namespace tetrion
