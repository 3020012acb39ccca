#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tetrion {

// Values of options and run settings as text and back; parsing takes the whole text or nothing.

// Shortest text that parses back to the same value.
std::string ValueText(double value);
std::string ValueText(std::int64_t value);
std::string ValueText(std::uint64_t value);
inline std::string ValueText(int value) {
  return ValueText(std::int64_t{value});
}
inline std::string ValueText(std::uint32_t value) {
  return ValueText(std::uint64_t{value});
}

// Leaves `out` alone and returns false when `text` is no number of [min, max].
bool ParseValue(std::string_view text, double min, double max, double& out);
bool ParseValue(std::string_view text, std::int64_t min, std::int64_t max, std::int64_t& out);
bool ParseValue(std::string_view text, std::uint64_t min, std::uint64_t max, std::uint64_t& out);
bool ParseValue(std::string_view text, int min, int max, int& out);
bool ParseValue(std::string_view text, std::uint32_t min, std::uint32_t max, std::uint32_t& out);
// "true", "1", "on", "yes" and their opposites.
bool ParseValue(std::string_view text, bool& out);

// "1 to 4096".
template <typename T>
std::string RangeText(T min, T max) {
  return ValueText(min) + " to " + ValueText(max);
}

// Whether `value` is one of the alternatives of "a|b|c".
bool IsOneOf(std::string_view value, std::string_view alternatives);
// Safe as file name and in TOML: what kPlainNames says.
inline constexpr const char* kPlainNames =
    "1 to 64 letters, digits, '.', '_' or '-', not beginning with '.' or '-'";
bool IsPlainName(std::string_view text);

// When the run ends by itself. Both zero: never.
struct StopAfter {
  double seconds = 0;       // of this start
  std::uint64_t steps = 0;  // environment steps of the whole run
};
// "30s", "2m", "1h", "50000000steps"; "" is never. Throws Error(kUsage) with the forms allowed.
StopAfter ParseStopAfter(const std::string& text);

}  // namespace tetrion
