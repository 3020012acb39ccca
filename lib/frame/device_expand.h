#pragma once

#include <cstdint>

#include "lib/frame/row_slots.h"

namespace tetrion {

namespace cuda {
class Stream;
}

// ExpandFn for rows in device memory: enqueues the expansion of the records of row `*row`, a number
// in device memory, into `out` [M, view_floats] f32 of device memory. May be captured.
using DeviceExpandFn = void (*)(const RowSlots& slots, const std::uint64_t* row, int queue_size,
                                float* out, cuda::Stream& stream);

}  // namespace tetrion
