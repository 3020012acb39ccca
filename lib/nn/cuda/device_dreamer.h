#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/cuda/device.h"
#include "lib/frame/row_slots.h"
#include "lib/nn/cuda/device_parameters.h"
#include "lib/nn/cuda/dreamer_weights.h"
#include "lib/nn/dreamer/dreamer_shape.h"

namespace tetrion {

// What acts of DreamerV3's model, in device memory, with a recurrent state for each of M lanes.
//
// Thread role: one thread. Nothing is allocated after construction.
class DeviceDreamer {
 public:
  // Initial weights are those of a trainer with this seed, version 0; no lane has a state. Waits
  // for the device. Throws Error(kUsage) for pictures, whose encoder has no kernels.
  DeviceDreamer(const cuda::Device& device, const DreamerShape& shape, std::uint64_t seed,
                int lanes);

  // Bytes of a blob: the prefix of the parameters that acting needs.
  std::size_t WeightsBytes() const { return FloatsOf(layout_) * sizeof(float); }
  // Takes a blob of that size behind the stream's work; the blob is read before it returns.
  void Load(std::span<const std::byte> blob, std::uint32_t version, cuda::Stream& stream);
  const DeviceParameters& parameters() const { return parameters_; }

  // Enqueues one step of all lanes: views [M, F] f32 of row `*row` -> logits [A, M] f32 before
  // masks, NaN for a lane whose state is not finite. Lane ids are their places. May be captured.
  void Step(const RowSlots& slots, const std::uint64_t* row, const DreamerDraws& draws,
            const float* views, float* logits, cuda::Stream& stream);
  // [M], what each lane has taken since: to be written behind every Step.
  cuda::DeviceSpan<std::int32_t> actions() const { return states_.action; }

 private:
  const ParameterLayout layout_;  // of what acts
  DeviceParameters parameters_;
  const DreamerActingWeights weights_;
  cuda::DeviceBuffer deter_, stoch_, action_;  // as DreamerStates
  cuda::DeviceBuffer scratch_;                 // [M, DreamerScratch]
  const DreamerStates states_;
};

}  // namespace tetrion
