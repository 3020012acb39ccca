#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tetrion {

// Writing JSON; lib/core/json_value.h reads it. Pure.

// Text as a JSON string literal, quotes included.
std::string JsonQuoted(std::string_view text);

// An object on one line, written field by field in order, without spaces.
class JsonObject {
 public:
  JsonObject& Add(std::string_view key, std::string_view text) {
    return AddJson(key, JsonQuoted(text));
  }
  JsonObject& Add(std::string_view key, const char* text) {
    return Add(key, std::string_view(text));
  }
  // The shortest text that reads back as this value; null for a value that is not finite.
  JsonObject& Add(std::string_view key, double value);
  JsonObject& Add(std::string_view key, bool value) {
    return AddJson(key, value ? "true" : "false");
  }
  template <std::integral Integer>
  JsonObject& Add(std::string_view key, Integer value) {
    return AddJson(key, std::to_string(value));
  }
  // `json` is a value already.
  JsonObject& AddJson(std::string_view key, std::string_view json);

  std::string Text() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

}  // namespace tetrion
