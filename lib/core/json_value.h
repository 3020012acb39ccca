#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tetrion {

// A bounded reader of JSON; lib/core/json.h writes it.

struct JsonMember;

// A document as checkpoint headers and manifests need it: objects, arrays, strings and numbers
// (kept as text); true, false and null are refused, they occur in neither.
struct JsonValue {
  enum class Kind { kString, kNumber, kArray, kObject };
  Kind kind = Kind::kString;
  std::string text;                 // string (unescaped) or number
  std::vector<JsonValue> items;     // array
  std::vector<JsonMember> members;  // object, in file order

  // The member of that name; null when there is none or this is no object.
  const JsonValue* Find(std::string_view name) const;
};

// One `key: value` of an object.
struct JsonMember {
  std::string key;
  JsonValue value;
};

// Bounds on what a document may ask the reader to build.
inline constexpr int kMaxJsonDepth = 8;
inline constexpr std::size_t kMaxJsonValues = 65536;

// Parses a whole document. Returns false for anything malformed, too deep, too large
// or followed by more than spaces; `value` is then unspecified.
[[nodiscard]] bool ParseJson(std::string_view text, JsonValue& value);

}  // namespace tetrion
