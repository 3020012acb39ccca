#include "lib/envs/cuda/device_views.h"

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/envs/cuda/view_kernels.cuh"

namespace tetrion {
namespace {

void ExpandPlanesOfRow(const RowSlots& slots, const std::uint64_t* row, int queue_size, float* out,
                       cuda::Stream& stream) {
  const auto floats = static_cast<unsigned>(PlanesLayout::Floats(queue_size));
  cuda::Launch(stream, PlanesOfRow, cuda::BlocksFor(slots.lanes, kViewLanes), kViewThreads, 0,
               slots, row, queue_size, floats,
               cuda::DeviceSpan<float>(out, std::size_t{slots.lanes} * floats));
}

void ExpandFloatsOfRow(const RowSlots& slots, const std::uint64_t* row, int /*queue_size*/,
                       float* out, cuda::Stream& stream) {
  const auto floats = static_cast<unsigned>(slots.record_bytes / sizeof(float));
  const std::size_t cells = std::size_t{slots.lanes} * floats;
  cuda::Launch(stream, FloatsOfRow, cuda::BlocksFor(cells, kViewThreads), kViewThreads, 0, slots,
               row, floats, cuda::DeviceSpan<float>(out, cells));
}

void ExpandBytesOfRow(const RowSlots& slots, const std::uint64_t* row, int /*queue_size*/,
                      float* out, cuda::Stream& stream) {
  const std::size_t cells = std::size_t{slots.lanes} * slots.record_bytes;
  cuda::Launch(stream, BytesOfRow, cuda::BlocksFor(cells, kViewThreads), kViewThreads, 0, slots,
               row, cuda::DeviceSpan<float>(out, cells));
}

void ExpandShadesOfRow(const RowSlots& slots, const std::uint64_t* row, int /*queue_size*/,
                       float* out, cuda::Stream& stream) {
  const std::size_t bytes = std::size_t{slots.lanes} * slots.record_bytes;
  cuda::Launch(stream, ShadesOfRow, cuda::BlocksFor(bytes, kViewThreads), kViewThreads, 0, slots,
               row, cuda::DeviceSpan<float>(out, 4 * bytes));
}

}  // namespace

DeviceExpandFn DeviceExpandOf(const ObsSpec& obs) {
  if (obs.record == kPlanesRecord) return ExpandBytesOfRow;
  if (obs.record == kPacked2Record) return ExpandShadesOfRow;
  if (obs.view == "planes") return ExpandPlanesOfRow;
  if (obs.view == "vector") return ExpandFloatsOfRow;
  throw Error(ExitCode::kUsage,
              "view " + obs.view + " is not made on a device: choose planes or vector");
}

}  // namespace tetrion
