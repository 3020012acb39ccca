#include "lib/run/run_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/run/config_file.h"
#include "lib/run/program.h"
#include "tests/support/no_open_files.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest() {
    std::string pattern = fs::temp_directory_path() / "tetrion-runs-XXXXXX";
    runs_ = mkdtemp(pattern.data());
  }
  ~RunFolderTest() override {
    fs::permissions(runs_, fs::perms::owner_all);
    fs::remove_all(runs_);
  }

  std::string ErrorOf(const std::function<void()>& fn, ExitCode code = ExitCode::kUsage) {
    try {
      fn();
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code));
      return error.what();
    }
    return "";
  }

  std::string runs_;
};

TEST_F(RunFolderTest, CreatedFolderHoldsWhatServicesWriteInto) {
  const RunFolder folder = RunFolder::Create(runs_ + "/deep/er", "first");
  EXPECT_EQ(folder.path(), runs_ + "/deep/er/first");
  EXPECT_EQ(folder.name(), "first");
  EXPECT_TRUE(fs::is_directory(folder.checkpoints()));
  EXPECT_TRUE(fs::is_directory(folder.logs()));
}

TEST_F(RunFolderTest, ExistingRunIsRefusedWithTheLineThatResumesIt) {
  (void)RunFolder::Create(runs_, "first");
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Create(runs_, "first"); }),
              HasSubstr("./tetrion up --resume first"));
}

TEST_F(RunFolderTest, EnsuredFolderIsMadeOnceAndHoldsNothingUntilItIsAskedTo) {
  const RunFolder folder = RunFolder::Ensure(runs_ + "/deep", "first");
  EXPECT_EQ(folder.path(), runs_ + "/deep/first");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  std::ofstream(folder.path() + "/notes") << "a person's";
  EXPECT_EQ(RunFolder::Ensure(runs_ + "/deep", "first").path(), folder.path());
  EXPECT_TRUE(fs::exists(folder.path() + "/notes"));
  folder.MakeFolders();
  EXPECT_TRUE(fs::is_directory(folder.checkpoints()));
  EXPECT_TRUE(fs::is_directory(folder.logs()));
  EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Ensure(runs_, "a/b"); }), HasSubstr("run name"));
}

TEST_F(RunFolderTest, NamesThatAreNoFileNamesAreRefused) {
  for (const char* name : {"", ".", "..", "a/b", "-x", "latest", "a b"}) {
    EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Create(runs_, name); }), HasSubstr("run name"))
        << name;
  }
}

TEST_F(RunFolderTest, PathThatCannotBeWrittenIsNamed) {
  std::ofstream(runs_ + "/file") << "not a folder";
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Create(runs_ + "/file", "x"); }),
              HasSubstr(runs_ + "/file"));
}

TEST_F(RunFolderTest, ConfigurationRoundTripsAsToml) {
  const RunFolder folder = RunFolder::Create(runs_, "first");
  RunConfig config;
  config.env = "cartpole";
  config.seed = 9007199254740993;
  config.vtrace.discount = 0.5;
  config.vtrace.reward_scale = "symlog";
  folder.WriteConfig(config);
  EXPECT_EQ(RunFolder::Open(runs_, "first").ReadConfig(), config);
  const std::uint64_t hash = RunConfigHash(config);
  for (const std::uint64_t seed : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    config.seed = seed;  // beyond TOML's integers
    folder.WriteConfig(config);
    EXPECT_EQ(RunFolder::Open(runs_, "first").ReadConfig(), config);
    EXPECT_EQ(RunConfigFromText(ToText(config)), config);
  }
  config.seed = 9007199254740993;
  EXPECT_EQ(RunConfigHash(config), hash);
  std::ifstream revision(folder.revision());
  std::string line;
  std::getline(revision, line);
  EXPECT_EQ(line, Revision());
}

// As tetrion 0.1 wrote it.
TEST_F(RunFolderTest, ConfigurationOfAnOlderRunHasTheAlgorithmsKeysAmongTheOthers) {
  const RunFolder folder = RunFolder::Create(runs_, "older");
  WriteAtomically(folder.config_toml(),
                  "[run]\nenv = \"cartpole\"\nlanes = 16\nalgo = \"vtrace\"\nwindow = 32\n"
                  "discount = 0.98\nreuse = 8\nreward_scale = \"symlog\"\n");
  const RunConfig config = folder.ReadConfig();
  EXPECT_EQ(config.lanes, 16);
  EXPECT_EQ(config.vtrace.discount, 0.98);
  EXPECT_EQ(config.vtrace.reward_scale, "symlog");
}

TEST_F(RunFolderTest, LatestIsTheRunConfiguredLast) {
  for (const char* name : {"b", "c", "a"}) RunFolder::Create(runs_, name).WriteConfig(RunConfig());
  (void)RunFolder::Create(runs_, "unconfigured");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(runs_ + "/c/config.toml", now + std::chrono::seconds(5));
  EXPECT_EQ(RunFolder::Open(runs_, "latest").name(), "c");
  EXPECT_EQ(RunFolder::Open("/nowhere", runs_ + "/b/").name(), "b");
}

TEST_F(RunFolderTest, WhatIsNoRunIsToldWhy) {
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, "latest"); }),
              HasSubstr("no run in " + runs_));
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, "gone"); }), HasSubstr("no such folder"));
  fs::create_directory(runs_ + "/empty");
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, "empty"); }),
              HasSubstr("config.toml is missing"));
}

TEST_F(RunFolderTest, PathThatCannotBeLookedAtIsRefusedWithTheReason) {
  const std::string name(300, 'x');
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, name); }),
              HasSubstr("cannot read " + runs_ + "/" + name + ": File name too long"));
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_ + "/" + name, "latest"); }),
              HasSubstr("File name too long"));
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::At(runs_ + "/" + name).HasConfig(); }),
              HasSubstr("File name too long"));
}

// A link that leads to itself cannot be followed, whoever looks.
TEST_F(RunFolderTest, LatestSaysWhichFolderCouldNotBeReadWhereThereIsNoOther) {
  fs::create_symlink("loop", runs_ + "/loop");
  EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, "latest"); }),
              HasSubstr("cannot read " + runs_ + "/loop: "));
  RunFolder::Create(runs_, "mine").WriteConfig(RunConfig());
  EXPECT_EQ(RunFolder::Open(runs_, "latest").name(), "mine");
}

TEST_F(RunFolderTest, RunOfAnotherUserIsSuspectedWherePermissionsLack) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every folder";
  const RunFolder folder = RunFolder::Create(runs_, "theirs");
  folder.WriteConfig(RunConfig());
  fs::permissions(folder.path(), fs::perms::none);
  for (const char* name : {"theirs", "latest"}) {
    EXPECT_THAT(ErrorOf([&] { (void)RunFolder::Open(runs_, name); }),
                HasSubstr("Permission denied; is the run another user's?"))
        << name;
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_F(RunFolderTest, SpoiltConfigurationNamesFileAndKey) {
  const RunFolder folder = RunFolder::Create(runs_, "first");
  WriteAtomically(folder.config_toml(), "[run]\nlanes = 0\n");
  const std::string message = ErrorOf([&] { (void)folder.ReadConfig(); }, ExitCode::kConfig);
  EXPECT_THAT(message, HasSubstr("config.toml"));
  EXPECT_THAT(message, HasSubstr("lanes"));
}

// ./tetrion up ends a run whose coordinator says that its settings are wrong.
TEST_F(RunFolderTest, ConfigurationThatCannotBeReadForNowIsNoWrongOne) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const RunFolder folder = RunFolder::Create(runs_, "a");
  folder.WriteConfig({});
  const testing::NoOpenFiles none;
  EXPECT_THAT(ErrorOf([&] { (void)folder.ReadConfig(); }, ExitCode::kTryAgain),
              HasSubstr(folder.config_toml()));
}

TEST_F(RunFolderTest, EarlierChangesThatCannotBeReadAreNotReplaced) {
  const RunFolder folder = RunFolder::Create(runs_, "a");
  fs::create_symlink("changes.jsonl", folder.changes_jsonl());  // a loop: refuses root, too
  const std::string error = ErrorOf(
      [&] { folder.RecordChanges({{"lanes", "1", "2"}}, /*update=*/3); }, ExitCode::kConfig);
  EXPECT_THAT(error, HasSubstr("cannot read " + folder.changes_jsonl()));
  EXPECT_TRUE(fs::is_symlink(folder.changes_jsonl()));
}

TEST_F(RunFolderTest, EndpointsRoundTrip) {
  const std::string path = runs_ + "/endpoints.json";
  const Endpoints written = {
      "ipc:///tmp/x", {{"coordinator", "127.0.0.1:1"}, {"actor-0", "h:2"}}, 42, "r", 7,
      "/dev/shm/x"};
  WriteEndpoints(path, written);
  const Endpoints read = ReadEndpoints(path);
  EXPECT_EQ(read.control, written.control);
  EXPECT_EQ(read.http, written.http);
  EXPECT_EQ(read.pid, 42);
  EXPECT_EQ(read.run, "r");
  EXPECT_EQ(read.run_id, 7U);
  EXPECT_EQ(read.shm_dir, "/dev/shm/x");
}

TEST_F(RunFolderTest, EndpointsAreMissingOrWrongWithDifferentCodes) {
  EXPECT_THAT(ErrorOf([&] { (void)ReadEndpoints(runs_ + "/e.json"); }, ExitCode::kTryAgain),
              HasSubstr("tetrion-coordinator"));
  for (const char* text :
       {"", "{", "[]", "{}", R"({"control": 3})", R"({"control": "x", "http": []})"}) {
    WriteAtomically(runs_ + "/e.json", text);
    EXPECT_THAT(ErrorOf([&] { (void)ReadEndpoints(runs_ + "/e.json"); }, ExitCode::kConfig),
                HasSubstr("e.json"))
        << text;
  }
}

TEST_F(RunFolderTest, LinkThatLeadsNowhereIsNamed) {
  const std::string link = runs_ + "/link";
  fs::create_symlink(runs_ + "/gone", link);
  for (const std::string& runs_dir : {link, link + "/", link + "/below"}) {
    EXPECT_THAT(ErrorOf([&] { RunFolder::Create(runs_dir, "a"); }),
                HasSubstr(": a link leads nowhere (" + link + " -> " + runs_ +
                          "/gone); make the "
                          "folder that it names"));
  }
  fs::create_directory(runs_ + "/gone");
  EXPECT_EQ(ErrorOf([&] { RunFolder::Create(link + "/below", "a"); }), "");
}

TEST(DefaultRunsDirTest, IsRunsOrWhatTheScriptSays) {
  constexpr const char* kName = "TETRION_DEFAULT_RUNS_DIR";
  unsetenv(kName);
  EXPECT_EQ(DefaultRunsDir(), "runs");
  setenv(kName, "", 1);
  EXPECT_EQ(DefaultRunsDir(), "runs");
  setenv(kName, "/checkout/runs", 1);
  EXPECT_EQ(DefaultRunsDir(), "/checkout/runs");
  EXPECT_EQ(RunArguments("/checkout/runs", "a"), "a");
  EXPECT_EQ(RunArguments("runs", "a"), "a --runs-dir runs") << "./tetrion would look elsewhere";
  unsetenv(kName);
  EXPECT_EQ(RunArguments("runs", "a"), "a");
  EXPECT_EQ(RunArguments("/checkout/runs", "a"), "a --runs-dir /checkout/runs");
}

TEST(RunNameTest, RefusalSaysAllThatANameMustBe) {
  for (const std::string good : {"a", "_a", "0.a-b"}) EXPECT_NO_THROW(CheckRunName(good));
  for (const std::string bad : {"-a", ".a", "a b", "", "latest"}) {
    try {
      CheckRunName(bad);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "run name '" + bad +
                    "': expected 1 to 64 letters, digits, '.', '_' or '-', not beginning with '.' "
                    "or '-', and not 'latest'");
    }
  }
}

TEST(RunNameTest, DefaultNameCarriesEnvironmentAndTime) {
  std::tm local{};
  local.tm_year = 126;
  local.tm_mday = 31;
  local.tm_hour = 17;
  local.tm_min = 5;
  local.tm_isdst = -1;
  EXPECT_EQ(DefaultRunName("cartpole", std::mktime(&local)), "cartpole-20260131-170500");
}

}  // namespace
}  // namespace tetrion
