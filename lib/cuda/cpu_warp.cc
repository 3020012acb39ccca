#include "lib/cuda/cpu_warp.h"

namespace tetrion::cuda::sim {
namespace {

// The first lane of the running lane's group.
unsigned GroupOf(unsigned lane, int width) {
  return lane & ~(static_cast<unsigned>(width) - 1);
}

}  // namespace

unsigned LaneAbove(unsigned delta, int width) {
  const unsigned lane = CurrentLane();
  const unsigned end = GroupOf(lane, width) + static_cast<unsigned>(width);
  return delta < end - lane ? lane + delta : lane;
}

unsigned LaneBelow(unsigned delta, int width) {
  const unsigned lane = CurrentLane();
  return delta <= lane - GroupOf(lane, width) ? lane - delta : lane;
}

unsigned LaneAcross(unsigned bits, int width) {
  const unsigned lane = CurrentLane();
  const unsigned other = lane ^ bits;
  return other < GroupOf(lane, width) + static_cast<unsigned>(width) ? other : lane;
}

unsigned LaneOf(int source, int width) {
  const unsigned group = GroupOf(CurrentLane(), width);
  return group + (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1));
}

}  // namespace tetrion::cuda::sim
