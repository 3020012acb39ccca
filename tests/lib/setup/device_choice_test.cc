#include "lib/setup/device_choice.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

// The tests are built as the programs are.
const bool kIsSim = [] {
  try {
    CheckDeviceChoice({.device = "sim"});
    return true;
  } catch (const Error&) {
    return false;
  }
}();
const char* const kBuilt = kIsSim ? "sim" : "cuda";
const char* const kOther = kIsSim ? "cuda" : "sim";

DeviceChoice Parsed(std::vector<const char*> argv) {
  argv.insert(argv.begin(), "program");
  DeviceChoice choice;
  ServiceOptions parser("program", "learner", "A program.");
  AddDeviceChoice(parser, choice);
  EXPECT_FALSE(parser.Parse(static_cast<int>(argv.size()), argv.data()).has_value());
  CheckDeviceChoice(choice);
  return choice;
}

std::string RefusalOf(const std::vector<const char*>& argv) {
  try {
    (void)Parsed(argv);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(DeviceChoiceTest, ReplayIsInHostMemoryUnlessADeviceIsNamed) {
  EXPECT_EQ(Parsed({}).device, "cpu");
  const DeviceChoice resident = Parsed({"--device", kBuilt, "--resident-lanes", "64"});
  EXPECT_EQ(resident.device, kBuilt);
  EXPECT_EQ(resident.resident_lanes, 64);
}

TEST(DeviceChoiceTest, DeviceOfAnotherBuildIsRefusedWithTheOneThereIs) {
  EXPECT_THAT(RefusalOf({"--device", kOther}), HasSubstr(std::string("cpu and ") + kBuilt));
}

TEST(DeviceChoiceTest, ResidentLanesNeedADevice) {
  EXPECT_THAT(RefusalOf({"--resident-lanes", "64"}), HasSubstr("give --device cuda as well"));
}

TEST(DeviceChoiceTest, UpdatesOnADeviceNeedOne) {
  EXPECT_EQ(Parsed({}).trainer, "auto");
  EXPECT_EQ(Parsed({"--device", kBuilt, "--trainer-device", "device"}).trainer, "device");
  EXPECT_THAT(RefusalOf({"--trainer-device", "device"}), HasSubstr("give --device cuda as well"));
}

TEST(DeviceChoiceTest, ResidentLanesAreWholeGroupsOfTheRunsLanes) {
  RunConfig run;
  run.lanes = 8;
  EXPECT_EQ(ResidentGroups(0, run), 0);
  EXPECT_EQ(ResidentGroups(8, run), 1);
  EXPECT_EQ(ResidentGroups(64, run), 8);
  EXPECT_EQ(ResidentGroupsText(64, run), "--resident-lanes 64 are 8 groups of the run's 8 lanes");
  try {
    (void)ResidentGroups(12, run);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("--resident-lanes 12: not a multiple of the run's 8"));
  }
}

TEST(DeviceChoiceTest, UnknownDeviceIsRefusedWithThoseThereAre) {
  EXPECT_THAT(RefusalOf({"--device", "tpu"}), HasSubstr("cuda"));
}

}  // namespace
}  // namespace tetrion
