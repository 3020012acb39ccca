#include "lib/run/stop_after.h"

#include <algorithm>

#include "lib/core/error.h"
#include "lib/run/value_text.h"

namespace tetrion {
namespace {

constexpr double kMaxStop = 1e15;

}  // namespace

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
