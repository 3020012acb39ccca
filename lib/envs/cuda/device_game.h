#pragma once

#include <cstdint>
#include <memory>

#include "lib/cuda/device.h"
#include "lib/envs/cuda/lane_spans.h"
#include "lib/frame/row_slots.h"

namespace tetrion {

// The games of device lanes: their states, and the kernels that play and show them.
class DeviceGame {
 public:
  virtual ~DeviceGame() = default;
  // Enqueues the row lanes.totals->row, in `blocks` blocks of `block_threads`.
  virtual void Step(const LaneSpans& lanes, const RowSlots& slots, StepKind kind, unsigned blocks,
                    unsigned block_threads, cuda::Stream& stream) = 0;
};

// How a device shows a lane in its row.
enum class DeviceRecord : std::uint8_t {
  kState,    // as the environment's own record
  kPlanes,   // PlanesLayout as u8, 0 or 1 (lib/envs/views/views.h)
  kPacked2,  // lib/envs/views/packed2.h
};

// What rows of device lanes hold, and what a network sees of it. Throws Error(kUsage) when there is
// no such environment, view or record, or none on a device.
struct DeviceShow {
  EnvSpec spec;
  DeviceRecord record;
};
DeviceShow DeviceShowOf(const DeviceLanesConfig& config);

// Allocates. `record` is that of DeviceShowOf(config).
std::unique_ptr<DeviceGame> MakeDeviceGame(const cuda::Device& device,
                                           const DeviceLanesConfig& config, DeviceRecord record);

}  // namespace tetrion
