#pragma once

#include <cstdio>
#include <string>

namespace tetrion {

// printf's text; what is longer than 1,023 bytes is cut.
template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[1024];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

}  // namespace tetrion
