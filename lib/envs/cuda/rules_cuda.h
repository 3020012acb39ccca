#pragma once

#include <cstdint>
#include <span>

#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/envs/cuda/rules_trace.h"

// The rules on a CUDA device, one lane a thread. Both calls below allocate, copy and wait for the
// device: they are for comparing the two builds, not for a training loop. Built with TETRION_CUDA
// only.

namespace tetrion {

// Devices that can be used now; 0 also where there is no driver.
int CudaDeviceCount();

// Plays lanes 0..run.lanes-1 as PlayLane does; `out` is [run.lanes]. Throws Error(kTryAgain) with
// CUDA's message when the device fails.
void PlayLanesOnDevice(const TraceRun& run, std::span<LaneTrace> out);

// One CartPole step of every state; actions and terminated are [n], as long as `states`. Sine and
// cosine are CUDA's, which may differ from libm's in the last bits. Throws as above.
void StepCartPolesOnDevice(std::span<CartPoleState> states, std::span<const std::int32_t> actions,
                           std::span<std::uint8_t> terminated);

}  // namespace tetrion
