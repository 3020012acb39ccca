#include "lib/setup/device_choice.h"

#include <gmock/gmock.h>

#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(Parsed({"--device", "sim"}).device, "sim");
  const DeviceChoice resident = Parsed({"--device", "cuda", "--resident-lanes", "64"});
  EXPECT_EQ(resident.device, "cuda");
  EXPECT_EQ(resident.resident_lanes, 64);
}

TEST(DeviceChoiceTest, ResidentLanesNeedADevice) {
  EXPECT_THAT(RefusalOf({"--resident-lanes", "64"}), HasSubstr("give --device cuda as well"));
}

TEST(DeviceChoiceTest, UnknownDeviceIsRefusedWithThoseThereAre) {
  EXPECT_THAT(RefusalOf({"--device", "tpu"}), HasSubstr("cuda"));
}

}  // namespace
}  // namespace tetrion
