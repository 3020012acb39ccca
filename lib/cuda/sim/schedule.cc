#include "lib/cuda/sim/schedule.h"

#include <charconv>
#include <cstdlib>

#include "lib/core/error.h"

namespace tetrion::cuda::sim {

std::string ToText(const Schedule& schedule) {
  if (schedule.order == Order::kForward) return "forward";
  if (schedule.order == Order::kReverse) return "reverse";
  return std::to_string(schedule.seed);
}

Schedule ScheduleFromText(const std::string& text) {
  if (text == "forward") return {Order::kForward, 0};
  if (text == "reverse") return {Order::kReverse, 0};
  Schedule schedule;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, schedule.seed);
  if (error == std::errc() && stop == end) return schedule;
  throw Error(ExitCode::kUsage, std::string(kScheduleVariable) + "=" + text +
                                    " is no schedule; give forward, reverse or a number");
}

Schedule ScheduleFromEnvironment(const Schedule& otherwise) {
  const char* text = std::getenv(kScheduleVariable);
  return text == nullptr ? otherwise : ScheduleFromText(text);
}

}  // namespace tetrion::cuda::sim
