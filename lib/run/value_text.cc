#include "lib/run/value_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"

namespace tetrion {
namespace {

constexpr double kMaxStop = 1e15;

template <typename T>
std::string Shortest(T value) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc() ? std::string(buffer.data(), end) : std::string();
}

template <typename T>
bool ParseWhole(std::string_view text, T min, T max, T& out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (!(value >= min && value <= max)) return false;  // also refuses NaN
  out = value;
  return true;
}

}  // namespace

std::string ValueText(double value) {
  return Shortest(value);
}
std::string ValueText(std::int64_t value) {
  return Shortest(value);
}
std::string ValueText(std::uint64_t value) {
  return Shortest(value);
}

bool ParseValue(std::string_view text, double min, double max, double& out) {
  return ParseWhole(text, min, max, out);
}
bool ParseValue(std::string_view text, std::int64_t min, std::int64_t max, std::int64_t& out) {
  return ParseWhole(text, min, max, out);
}
bool ParseValue(std::string_view text, std::uint64_t min, std::uint64_t max, std::uint64_t& out) {
  return ParseWhole(text, min, max, out);
}
bool ParseValue(std::string_view text, int min, int max, int& out) {
  return ParseWhole(text, min, max, out);
}
bool ParseValue(std::string_view text, std::uint32_t min, std::uint32_t max, std::uint32_t& out) {
  return ParseWhole(text, min, max, out);
}

bool ParseValue(std::string_view text, bool& out) {
  const bool yes = IsOneOf(text, "true|1|on|yes");
  if (!yes && !IsOneOf(text, "false|0|off|no")) return false;
  out = yes;
  return true;
}

bool IsOneOf(std::string_view value, std::string_view alternatives) {
  if (value.empty()) return false;
  while (true) {
    const auto bar = alternatives.find('|');
    if (alternatives.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    alternatives.remove_prefix(bar + 1);
  }
}

bool IsPlainName(std::string_view text) {
  return IsName(text) && text.front() != '.' && text.front() != '-';
}

StopAfter ParseStopAfter(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.eE+"), text.size());
  const std::string unit = text.substr(digits);
  double value = 0;
  if (ParseValue(text.substr(0, digits), 0.0, kMaxStop, value) && value > 0) {
    if (unit == "s") return {.seconds = value};
    if (unit == "m") return {.seconds = value * 60};
    if (unit == "h") return {.seconds = value * 3600};
    if (unit == "steps" && value >= 1) return {.steps = static_cast<std::uint64_t>(value)};
  }
  throw Error(ExitCode::kUsage, "--stop-after '" + text +
                                    "' is neither a time like 30s, 2m or 1h nor a number of "
                                    "environment steps like 50000000steps");
}

}  // namespace tetrion
