#pragma once

#include <cstdint>
#include <optional>

#include "lib/frame/row_layout.h"
#include "lib/replay/host_rows.h"

namespace tetrion::testing {

// HostRows as the suites over every memory take them: DeviceMemory's twin (device_memory.h).
class HostMemory {
 public:
  static const char* Missing() { return nullptr; }
  HostMemory(const RowSpec& row, int shards, int capacity_rows,
             const std::optional<LatentSpec>& latents = {}, bool lane_windows = false)
      : rows_(row, shards, capacity_rows, latents, lane_windows) {}

  HostRows& rows() { return rows_; }
  std::int32_t Action(int shard, std::uint64_t row, int lane) {
    return RowView(rows_.layout(), rows_.Row(shard, row)).action[lane];
  }

 private:
  HostRows rows_;
};

// The same with numbers by lane.
class HostLaneMemory : public HostMemory {
 public:
  HostLaneMemory(const RowSpec& row, int shards, int capacity_rows)
      : HostMemory(row, shards, capacity_rows, {}, true) {}
};

}  // namespace tetrion::testing
