#include "lib/core/json_value.h"

#include <cstring>
#include <utility>

namespace tetrion {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool Document(JsonValue& value) {
    if (!Value(value, 0)) return false;
    SkipSpaces();
    return at_ == text_.size();
  }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr &&
           text_[at_] != '\0') {
      ++at_;
    }
  }
  bool Take(char expected) {
    SkipSpaces();
    if (at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }

  bool Value(JsonValue& value, int depth) {
    SkipSpaces();
    if (depth > kMaxJsonDepth || ++values_ > kMaxJsonValues || at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        value.kind = JsonValue::Kind::kString;
        return String(value.text);
      case '[':
        return Array(value, depth);
      case '{':
        return Object(value, depth);
      default:
        return Number(value);
    }
  }

  bool Array(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kArray;
    ++at_;
    if (Take(']')) return true;
    do {
      value.items.emplace_back();
      if (!Value(value.items.back(), depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }

  bool Object(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kObject;
    ++at_;
    if (Take('}')) return true;
    do {
      SkipSpaces();
      std::string key;
      if (at_ == text_.size() || text_[at_] != '"' || !String(key) || !Take(':')) return false;
      value.members.push_back({std::move(key), {}});
      if (!Value(value.members.back().value, depth + 1)) return false;
    } while (Take(','));
    return Take('}');
  }

  // A number in JSON's grammar, kept as text.
  bool Number(JsonValue& value) {
    value.kind = JsonValue::Kind::kNumber;
    const std::size_t begin = at_;
    if (Peek() == '-') ++at_;
    if (!Digits()) return false;
    if (Peek() == '.') {
      ++at_;
      if (!Digits()) return false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!Digits()) return false;
    }
    value.text = text_.substr(begin, at_ - begin);
    return true;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Digits() {
    const std::size_t begin = at_;
    while (IsDigit(Peek())) ++at_;
    return at_ > begin;
  }

  bool String(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
      } else if (!Escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool Escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) return false;
    const char name = text_[at_++];
    if (const std::size_t known = kNames.find(name); known != std::string_view::npos) {
      out += kMeanings[known];
      return true;
    }
    if (name != 'u' || text_.size() - at_ < 4) return false;
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
      if (digit == std::string_view::npos) return false;
      code = code * 16 + static_cast<unsigned>(digit);
    }
    // Our writers escape control characters only; everything else travels as UTF-8.
    if (code >= 0x80) return false;
    out += static_cast<char>(code);
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool ParseJson(std::string_view text, JsonValue& value) {
  value = JsonValue{};
  return Parser(text).Document(value);
}

}  // namespace tetrion
