#include "tools/up/config_keys.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConfigKeysTest : public ::testing::Test {
 protected:
  ConfigKeysTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-keys-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ConfigKeysTest() override { std::filesystem::remove_all(folder_); }

  std::string File() const { return folder_ + "/t.toml"; }
  UpOptions Parsed(const std::string& toml, std::vector<const char*> more = {}) {
    std::ofstream(File()) << toml;
    const std::string file = File();
    std::vector<const char*> argv = {"tetrion-up", "--config", file.c_str()};
    argv.insert(argv.end(), more.begin(), more.end());
    UpOptions options;
    EXPECT_EQ(ParseUpOptions(static_cast<int>(argv.size()), argv.data(), options), std::nullopt);
    return options;
  }
  std::string RefusalOf(const std::string& toml, const std::vector<const char*>& more = {}) {
    try {
      (void)Parsed(toml, more);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(ConfigKeysTest, WhatUpTellsItsServicesItselfIsRefusedInTheirSections) {
  for (const auto& [section, key, value] : {std::array<std::string, 3>{"actor", "workers", "3"},
                                            {"actor", "inference", "streamed"},
                                            {"actor", "groups", "4"},
                                            {"learner", "resident_lanes", "64"},
                                            {"coordinator", "run", "mine"},
                                            {"coordinator", "runs_dir", "/tmp/mine"},
                                            {"coordinator", "resume", "mine"}}) {
    EXPECT_THAT(RefusalOf("[" + section + "]\n" + key + " = \"" + value + "\"\n"),
                AllOf(HasSubstr(File() + ": [" + section + "] " + key + " = '" + value + "'"),
                      HasSubstr("write " + key + " in [up]")));
  }
  EXPECT_THAT(RefusalOf("[actor]\nname = \"a\"\n"),
              AllOf(HasSubstr(File() + ": [actor] name = 'a': up names its actors itself"),
                    HasSubstr("leave it out")));
}

TEST_F(ConfigKeysTest, EverythingElseIsTheServicesOwn) {
  const UpOptions options = Parsed(
      "[up]\nworkers = 3\ngroups = 4\n[actor]\npolicy = \"random\"\n[learner]\nname = \"l\"\n"
      "checkpoint_every = 1\n");
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.groups, 4);
}

TEST_F(ConfigKeysTest, ThreadsAndDeviceOfTheLearnerAreThoseThatUpPlansWith) {
  const std::string file = "[learner]\nthreads = 16\ntrainer-device = \"cpu\"\n";
  const UpOptions options = Parsed(file);
  EXPECT_EQ(options.threads, 16);
  EXPECT_EQ(options.replay.trainer, "cpu");
  EXPECT_EQ(Parsed(file, {"--threads", "0"}).threads, 0) << "the command line beats the file";
  EXPECT_EQ(Parsed(file, {"--trainer-device", "auto"}).replay.trainer, "auto");
}

TEST_F(ConfigKeysTest, ThreadsAreMeasuredWhereUpIsToldAndOnlyThere) {
  EXPECT_EQ(Parsed("[up]\nthreads = \"auto\"\n").threads, std::nullopt);
  EXPECT_EQ(Parsed("[up]\nthreads = \"auto\"\n", {"--threads", "3"}).threads, 3);
  EXPECT_EQ(Parsed("[learner]\nthreads = 16\n", {"--threads", "auto"}).threads, std::nullopt);
  EXPECT_THAT(RefusalOf("[learner]\nthreads = \"auto\"\n"),
              AllOf(HasSubstr("[learner] threads = 'auto': is no number from 0 to 256"),
                    HasSubstr("auto belongs in [up]")));
}

TEST_F(ConfigKeysTest, FolderOfRunsBeatsTheDefaultOfTheScriptHoweverTheFileSaysIt) {
  constexpr const char* kDefault = "TETRION_DEFAULT_RUNS_DIR";
  setenv(kDefault, "/checkout/runs", 1);
  for (const char* file : {"[up]\nruns_dir = \"..\"\n", "up.runs_dir = \"..\"\n",
                           "[up]\n\"runs-dir\" = '..'\n", "up = { runs_dir = \"..\" }\n"}) {
    EXPECT_EQ(Parsed(file).runs_dir, "..") << file;
  }
  EXPECT_EQ(Parsed("[up]\nactors = 2\n").runs_dir, "/checkout/runs");
  unsetenv(kDefault);
}

TEST_F(ConfigKeysTest, DeviceOfTheLearnerIsJudgedBeforeAnythingIsMade) {
  EXPECT_THAT(RefusalOf("[learner]\ndevice = \"tpu\"\n"), HasSubstr("--device tpu"));
  EXPECT_THAT(RefusalOf("[learner]\ntrainer_device = \"device\"\n"), HasSubstr("give --device"));
}

TEST_F(ConfigKeysTest, KeyOfTheLearnerThatUpHasTooIsRefused) {
  for (const auto& [key, own, other] : {std::array<std::string, 3>{"threads", "4", "8"},
                                        {"device", "cpu", "sim"},
                                        {"trainer_device", "cpu", "auto"}}) {
    EXPECT_THAT(RefusalOf("[up]\n" + key + " = \"" + own + "\"\n[learner]\n" + key + " = \"" +
                          other + "\"\n"),
                AllOf(HasSubstr("[learner] " + key + " = '" + other + "'"),
                      HasSubstr("is also set in [up], to '" + own + "'; keep one")));
  }
}

}  // namespace
}  // namespace tetrion
