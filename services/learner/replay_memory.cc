#include "services/learner/replay_memory.h"

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/replay/host_rows.h"
#include "lib/setup/device_choice.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {

ReplayShape ReplayShapeOf(const RunConfig& run, int resident_lanes) {
  if (resident_lanes == 0) return {.shards = run.max_workers, .lanes = run.lanes};
  const int groups = ResidentGroups(resident_lanes, run);
  if (groups > run.max_workers) {
    throw Error(ExitCode::kUsage, ResidentGroupsText(resident_lanes, run) +
                                      ", the run has slots for " + std::to_string(run.max_workers) +
                                      "; begin a run with more --lanes or --max-workers");
  }
  return {.shards = 1, .lanes = resident_lanes, .groups = groups};
}

RowSpec RowSpecOf(const RunConfig& run, const ReplayShape& shape) {
  RowSpec row = RowSpecOf(run);
  row.lanes = static_cast<std::uint32_t>(shape.lanes);
  return row;
}

ReplayMemory::ReplayMemory(const std::string& device, const RowSpec& row, int shards,
                           int capacity_rows, const std::optional<LatentSpec>& latents,
                           bool lane_windows) {
  if (device == "cpu") {
    rows_ = std::make_unique<HostRows>(row, shards, capacity_rows, latents, lane_windows);
    return;
  }
  if (cuda::Device::Count() == 0) {
    throw Error(ExitCode::kConfig,
                "--device " + device +
                    ": there is no CUDA device to use; is one there, and its driver loaded and new "
                    "enough for CUDA 13 (nvidia-smi tells)?");
  }
  on_device_ = std::make_unique<OnDevice>(0);
  auto rows = std::make_unique<DeviceRows>(on_device_->device, row, shards, capacity_rows,
                                           on_device_->writer, on_device_->reader, latents);
  on_device_->rows = rows.get();
  rows_ = std::move(rows);
  log::info("replay in the memory of {}", on_device_->device.name());
}

ReplayMemory::~ReplayMemory() = default;

}  // namespace tetrion::learner
