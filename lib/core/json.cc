#include "lib/core/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tetrion {

std::string JsonQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

JsonObject& JsonObject::Add(std::string_view key, double value) {
  if (!std::isfinite(value)) return AddJson(key, "null");
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return AddJson(key, {text.data(), end});
}

JsonObject& JsonObject::AddJson(std::string_view key, std::string_view json) {
  if (!fields_.empty()) fields_ += ',';
  fields_ += JsonQuoted(key);
  fields_ += ':';
  fields_ += json;
  return *this;
}

}  // namespace tetrion
