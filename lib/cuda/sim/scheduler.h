#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/cuda/sim/draws.h"
#include "lib/cuda/sim/schedule.h"

namespace tetrion::cuda::sim {

// The adversary: decides what the simulated device does next. Forward and reverse order drain one
// stream after the other. Random order goes in phases of random length: in each, streams have
// random priorities and one of them starves, so that the others run far ahead of it (in the manner
// of probabilistic concurrency testing, Burckhardt et al., ASPLOS 2010).
//
// Not thread-safe; the simulator's mutex guards it.
class Scheduler {
 public:
  explicit Scheduler(const Schedule& schedule) : schedule_(schedule), draws_(schedule.seed) {}

  const Schedule& schedule() const { return schedule_; }

  // Which of the streams that may run goes next: an index into their `numbers`, which are ascending
  // and not empty. `live` holds those and the others that are open or have work left.
  std::size_t PickStream(std::span<const std::uint64_t> numbers,
                         std::span<const std::uint64_t> live);
  // In how many parts the next operation is done; other streams come between them. At most `most`.
  std::uint32_t PickParts(std::uint64_t most);
  // How many steps a query of the host lets the device make.
  std::uint32_t PickQuerySteps();
  // 0..count-1 in the order in which blocks run.
  std::vector<std::uint32_t> BlockOrder(std::uint32_t count);
  // Where a random order begins among `count` threads.
  std::uint32_t PickThread(std::uint32_t count) { return draws_.Below(count); }

 private:
  void BeginPhase(std::span<const std::uint64_t> live);
  std::uint32_t Priority(std::uint64_t number) const;

  const Schedule schedule_;
  Draws draws_;
  std::uint64_t phase_ = 0;
  std::uint32_t steps_left_ = 0;
  std::optional<std::uint64_t> starved_;  // a stream's number
};

}  // namespace tetrion::cuda::sim
