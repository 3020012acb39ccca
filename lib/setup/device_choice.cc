#include "lib/setup/device_choice.h"

#include "lib/core/error.h"

namespace tetrion {

void AddDeviceChoice(ServiceOptions& parser, DeviceChoice& choice) {
  constexpr int kMostLanes = 1 << 20;
  parser.Add("device", &choice.device,
             "where the replay is: cpu, host memory; cuda, the first device; sim, a simulated one",
             {"cpu", "cuda", "sim"});
  parser.Add("resident-lanes", &choice.resident_lanes,
             "lanes that the learner plays itself in the device's memory, a multiple of the run's "
             "lanes; start no actors then, which have no place; 0: none",
             0, kMostLanes, "lanes");
  parser.Add("trainer-device", &choice.trainer,
             "where DreamerV3's updates are computed: cpu; device, the one of --device; auto, the "
             "device where it is CUDA's and these programs have the tensor library's part for it",
             {"auto", "cpu", "device"});
}

void CheckDeviceChoice(const DeviceChoice& choice) {
  if (choice.device != "cpu" && choice.device != TETRION_DEVICE) {
    throw Error(ExitCode::kUsage,
                "--device " + choice.device +
                    ": these programs were built for cpu and " TETRION_DEVICE
                    "; a build with TETRION_CUDA=ON has cuda, every other one sim");
  }
  if (choice.trainer == "device" && choice.device == "cpu") {
    throw Error(ExitCode::kUsage,
                "--trainer-device device computes on the device that holds the replay: give "
                "--device cuda as well, or --device sim to try it slowly");
  }
  if (choice.resident_lanes == 0 || choice.device != "cpu") return;
  throw Error(ExitCode::kUsage,
              "--resident-lanes are played in a device's memory: give --device cuda as well, or "
              "--device sim to try it slowly");
}

int ResidentGroups(int resident_lanes, const RunConfig& run) {
  if (resident_lanes % run.lanes == 0) return resident_lanes / run.lanes;
  throw Error(ExitCode::kUsage, "--resident-lanes " + std::to_string(resident_lanes) +
                                    ": not a multiple of the run's " + std::to_string(run.lanes) +
                                    " lanes (--lanes)");
}

std::string ResidentGroupsText(int resident_lanes, const RunConfig& run) {
  return "--resident-lanes " + std::to_string(resident_lanes) + " are " +
         std::to_string(ResidentGroups(resident_lanes, run)) + " groups of the run's " +
         std::to_string(run.lanes) + " lanes";
}

}  // namespace tetrion
