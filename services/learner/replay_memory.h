#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/cuda/device.h"
#include "lib/frame/row_layout.h"
#include "lib/replay/device_rows.h"
#include "lib/replay/latents.h"
#include "lib/replay/rows.h"
#include "lib/run/run_config.h"

namespace tetrion::learner {

// One shard of M lanes for each worker slot of the run; or a single one of all the lanes that the
// learner plays itself, which are groups of M: workers of the account without rings.
struct ReplayShape {
  int shards = 0;
  int lanes = 0;   // of a shard
  int groups = 0;  // resident ones; 0: rows come through rings
};
// Throws Error(kUsage) for lanes that are no whole groups, or more of them than the run has slots.
ReplayShape ReplayShapeOf(const RunConfig& run, int resident_lanes);
// The run's rows, with the shape's lanes.
RowSpec RowSpecOf(const RunConfig& run, const ReplayShape& shape);

// The replay's rows where --device says: in host memory (cpu), or in a device's with the streams
// that write and read them (cuda; sim: the simulated device). A program has one kind of device,
// the one it was built with.
//
// Thread roles: the writer's stream belongs to the thread that writes rows, the reader's to the
// trainer's.
class ReplayMemory {
 public:
  // `device`: cpu, or what this build has (lib/setup/device_choice.h). `lane_windows`: the run's
  // windows are of one lane each (HostRows). Throws Error: kConfig when there is no device,
  // kTryAgain when memory is short.
  ReplayMemory(const std::string& device, const RowSpec& row, int shards, int capacity_rows,
               const std::optional<LatentSpec>& latents = {}, bool lane_windows = false);
  ~ReplayMemory();

  ReplayRows& rows() { return *rows_; }
  const ReplayRows& rows() const { return *rows_; }

  struct OnDevice {
    explicit OnDevice(int ordinal)
        : device(ordinal), writer(device, "writer"), reader(device, "reader") {}
    cuda::Device device;
    cuda::Stream writer, reader;
    DeviceRows* rows = nullptr;
  };
  // Null where rows are in host memory.
  OnDevice* on_device() { return on_device_.get(); }

 private:
  std::unique_ptr<OnDevice> on_device_;  // outlives the rows
  std::unique_ptr<ReplayRows> rows_;
};

}  // namespace tetrion::learner
