#pragma once

#include <cstdint>

#include "lib/cuda/device.h"
#include "lib/frame/row_slots.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/device_columns.h"

namespace tetrion {

// Enqueues the gather of a tile's cells from a memory whose shard 0 is `first`. Any alignment of
// the records does; one of 16 bytes, here and there, is the fastest.
void LaunchGather(cuda::Stream& stream, const RowSlots& first, const GatherTile& tile,
                  const DeviceColumns& out);
// Policy versions of a tile of whole windows, one a run, of `windows` in all: into out[R, windows].
void LaunchGatherVersions(cuda::Stream& stream, const RowSlots& first, const GatherTile& tile,
                          std::uint32_t windows, std::uint32_t* out);

}  // namespace tetrion
