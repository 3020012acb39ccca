#include "lib/replay/cuda/push_step.h"

#include "lib/core/check.h"
#include "lib/cuda/launch.h"
#include "lib/replay/cuda/push_step_kernel.cuh"

namespace tetrion {

void LaunchPushStep(cuda::Stream& stream, const RowSlots& slots, std::uint64_t t,
                    const StepFields& fields) {
  TETRION_CHECK(slots.mask == nullptr || fields.mask != nullptr, "rows with masks have masks");
  constexpr unsigned kBlockThreads = 128;
  Launch(stream, PushStep, cuda::BlocksFor(slots.lanes, kBlockThreads), kBlockThreads, 0, slots, t,
         fields);
}

}  // namespace tetrion
