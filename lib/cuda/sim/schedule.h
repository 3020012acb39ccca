#pragma once

#include <cstdint>
#include <string>

namespace tetrion::cuda::sim {

// In which order the simulated device does what it may do in any order: streams, parts of copies,
// blocks of a grid, threads of a block.
enum class Order : std::uint8_t { kForward, kReverse, kRandom };

struct Schedule {
  Order order = Order::kRandom;
  std::uint64_t seed = 1;  // of kRandom
};

// "forward", "reverse" or the seed: the value of the environment variable that replays a schedule.
inline constexpr char kScheduleVariable[] = "TETRION_SIM_SEED";
std::string ToText(const Schedule& schedule);
// Throws Error(kUsage) for any other text.
Schedule ScheduleFromText(const std::string& text);
// What the variable says, or `otherwise` where it is not set.
Schedule ScheduleFromEnvironment(const Schedule& otherwise);

}  // namespace tetrion::cuda::sim
