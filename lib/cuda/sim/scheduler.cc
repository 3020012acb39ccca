#include "lib/cuda/sim/scheduler.h"

#include <algorithm>
#include <numeric>

namespace tetrion::cuda::sim {
namespace {

// A phase is 1 to 2^k steps long, k from 1 to this: long enough for one stream to lap a small ring,
// mostly short enough for many phases in a test.
constexpr std::uint32_t kPhaseDoublings = 6;
constexpr std::uint32_t kMostParts = 4;

}  // namespace

std::uint32_t Scheduler::Priority(std::uint64_t number) const {
  return PhiloxDraw(schedule_.seed, number, static_cast<std::uint32_t>(phase_),
                    PhiloxPurpose::kActions)
      .word[0];
}

void Scheduler::BeginPhase(std::span<const std::uint64_t> live) {
  ++phase_;
  steps_left_ = 1 + draws_.Below(2U << draws_.Below(kPhaseDoublings));
  // Any live stream, not only those that could run now; one index more stands for none.
  const std::uint32_t index = draws_.Below(static_cast<std::uint32_t>(live.size()) + 1);
  starved_.reset();
  if (index < live.size()) starved_ = live[index];
}

std::size_t Scheduler::PickStream(std::span<const std::uint64_t> numbers,
                                  std::span<const std::uint64_t> live) {
  if (schedule_.order == Order::kForward) return 0;
  if (schedule_.order == Order::kReverse) return numbers.size() - 1;
  if (steps_left_ == 0) BeginPhase(live);
  --steps_left_;
  std::vector<std::size_t> fed;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != starved_) fed.push_back(i);
  }
  if (fed.empty()) return 0;
  if (draws_.Below(4) == 0) return fed[draws_.Below(static_cast<std::uint32_t>(fed.size()))];
  return *std::max_element(fed.begin(), fed.end(), [&](std::size_t a, std::size_t b) {
    return Priority(numbers[a]) < Priority(numbers[b]);
  });
}

std::uint32_t Scheduler::PickParts(std::uint64_t most) {
  if (schedule_.order != Order::kRandom || most < 2) return 1;
  const auto bound = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kMostParts));
  return 1 + draws_.Below(bound);
}

std::uint32_t Scheduler::PickQuerySteps() {
  return schedule_.order == Order::kRandom ? draws_.Below(4) : 1;
}

std::vector<std::uint32_t> Scheduler::BlockOrder(std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  if (schedule_.order == Order::kReverse) std::reverse(order.begin(), order.end());
  if (schedule_.order == Order::kRandom) {
    for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draws_.Below(i)]);
  }
  return order;
}

}  // namespace tetrion::cuda::sim
