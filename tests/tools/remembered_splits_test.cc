#include "tools/up/remembered_splits.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lib/core/file.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

class RememberedSplitsTest : public ::testing::Test {
 protected:
  RememberedSplitsTest() {
    std::string pattern = fs::temp_directory_path() / "tetrion-splits-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RememberedSplitsTest() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  std::string Path() const { return folder_ + "/cache/tetrion/core-splits.json"; }
  void Write(const std::string& text) const {
    fs::create_directories(fs::path(Path()).parent_path());
    std::ofstream(Path()) << text;
  }
  std::size_t Files() const {
    const fs::directory_iterator files(fs::path(Path()).parent_path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  std::string folder_;
};

TEST_F(RememberedSplitsTest, SplitIsFoundAgainByItsKeyAlone) {
  const RememberedSplits splits(Path());
  EXPECT_EQ(splits.Find("a"), std::nullopt);
  EXPECT_TRUE(splits.Remember("a", {2, 8}));
  EXPECT_TRUE(splits.Remember("b", {1, 2}));
  EXPECT_EQ(RememberedSplits(Path()).Find("a"), (CoreSplit{2, 8}));
  EXPECT_EQ(splits.Find("b"), (CoreSplit{1, 2}));
  EXPECT_EQ(splits.Find("c"), std::nullopt);
  EXPECT_EQ(Files(), 1U);
}

TEST_F(RememberedSplitsTest, NewerSplitTakesTheOlderOnesPlace) {
  const RememberedSplits splits(Path());
  EXPECT_TRUE(splits.Remember("a", {2, 8}));
  EXPECT_TRUE(splits.Remember("a", {4, 4}));
  EXPECT_EQ(splits.Find("a"), (CoreSplit{4, 4}));
  std::ifstream file(Path());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text,
            "{\n \"splits\": [\n  {\n   \"for\": \"a\",\n   \"workers\": 4,\n   \"threads\": 4\n"
            "  }\n ]\n}\n");
}

TEST_F(RememberedSplitsTest, OldestIsForgottenWhenThereAreTooMany) {
  const RememberedSplits splits(Path());
  for (std::size_t i = 0; i <= RememberedSplits::kMost; ++i) {
    ASSERT_TRUE(splits.Remember(std::to_string(i), {1, 1}));
  }
  EXPECT_FALSE(splits.Find("0"));
  EXPECT_TRUE(splits.Find("1"));
  EXPECT_TRUE(splits.Find(std::to_string(RememberedSplits::kMost)));
}

TEST_F(RememberedSplitsTest, DamagedFileHoldsNothingAndIsReplaced) {
  const RememberedSplits splits(Path());
  for (const char* text :
       {"", "{", "[]", "null", R"({"splits": 3})", R"({"splits": [3]})",
        R"({"splits": [{"for": "a"}]})", R"({"splits": [{"workers": 1, "threads": 1}]})",
        R"({"splits": [{"for": "a", "workers": "many", "threads": 1}]})"}) {
    Write(text);
    EXPECT_EQ(splits.Find("a"), std::nullopt) << text;
    EXPECT_TRUE(splits.Remember("a", {1, 2})) << text;
    EXPECT_EQ(splits.Find("a"), (CoreSplit{1, 2})) << text;
  }
}

TEST_F(RememberedSplitsTest, SplitThatNoRunCanHaveIsNone) {
  for (const auto& [workers, threads] : {std::pair("0", "1"),
                                         {"65", "1"},
                                         {"1", "0"},
                                         {"1", "257"},
                                         {"-1", "1"},
                                         {"1", "18446744073709551615"}}) {
    Write(std::string(R"({"splits": [{"for": "a", "workers": )") + workers + R"(, "threads": )" +
          threads + "}]}");
    EXPECT_EQ(RememberedSplits(Path()).Find("a"), std::nullopt) << workers << " " << threads;
  }
}

TEST_F(RememberedSplitsTest, WhatCannotBeReadOrWrittenIsNoError) {
  std::ofstream(folder_ + "/file") << "x";
  const RememberedSplits below_a_file(folder_ + "/file/core-splits.json");
  EXPECT_EQ(below_a_file.Find("a"), std::nullopt);
  EXPECT_FALSE(below_a_file.Remember("a", {1, 1}));
  fs::create_directories(Path());
  const RememberedSplits is_a_folder(Path());
  EXPECT_EQ(is_a_folder.Find("a"), std::nullopt);
  EXPECT_FALSE(is_a_folder.Remember("a", {1, 1}));
  EXPECT_EQ(Files(), 1U) << "no part of a file is left";
  fs::remove(Path());
  fs::create_symlink(Path(), Path());  // cannot be opened, by root neither
  const RememberedSplits is_unreadable(Path());
  EXPECT_EQ(is_unreadable.Find("a"), std::nullopt);
  EXPECT_FALSE(is_unreadable.Remember("a", {1, 1}));
  EXPECT_TRUE(fs::is_symlink(Path())) << "it is replaced though nobody knows what it holds";
  const RememberedSplits nowhere("");
  EXPECT_EQ(nowhere.Find("a"), std::nullopt);
  EXPECT_FALSE(nowhere.Remember("a", {1, 1}));
}

TEST(RememberedSplitsPathTest, IsInTheUsersCache) {
  const auto path_with = [](const char* cache, const char* home) {
    const auto set = [](const char* name, const char* value) {
      return value == nullptr ? unsetenv(name) : setenv(name, value, 1);
    };
    EXPECT_EQ(set("XDG_CACHE_HOME", cache) + set("HOME", home), 0);
    return RememberedSplits::DefaultPath();
  };
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  EXPECT_EQ(path_with("/cache", "/home/me"), "/cache/tetrion/core-splits.json");
  EXPECT_EQ(path_with(nullptr, "/home/me"), "/home/me/.cache/tetrion/core-splits.json");
  EXPECT_EQ(path_with("relative", "/home/me"), "/home/me/.cache/tetrion/core-splits.json");
  EXPECT_EQ(path_with(nullptr, nullptr), "");
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

TEST(ProcessorInTest, IsTheNameThatTheKernelKnows) {
  EXPECT_EQ(ProcessorIn("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9R14\nflags\t: x\n"),
            "AMD EPYC 9R14");
  EXPECT_EQ(ProcessorIn("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"), "0xd40");
  EXPECT_EQ(ProcessorIn(""), "unknown processor");
}

class SplitKeyTest : public ::testing::Test {
 protected:
  std::string Key(const std::vector<Setting>& more = {}) const {
    std::vector<Setting> given = {{"env", "tetris-placement"}};
    given.insert(given.end(), more.begin(), more.end());
    return SplitKey(options_, MakeRunConfig(given), processor_, cores_, most_workers_);
  }

  UpOptions options_;
  std::string processor_ = "AMD EPYC 9R14";
  int cores_ = 2, most_workers_ = 2;
};

TEST_F(SplitKeyTest, WhatCostsNothingLeavesItAlone) {
  const std::string usual = Key();
  EXPECT_EQ(Key({{"seed", "7"}}), usual);
  EXPECT_EQ(Key({{"max_workers", "16"}}), usual);
  EXPECT_EQ(Key({{"learning_rate", "0.5"}}), usual);
  EXPECT_EQ(Key({{"window", std::to_string(MakeRunConfig({}).window)}}), usual);
  options_.run = "another";
  options_.stop_after = "5s";
  EXPECT_EQ(Key(), usual);
}

TEST_F(SplitKeyTest, WhatTakesTimeChangesIt) {
  const std::string usual = Key();
  for (const Setting& setting : std::vector<Setting>{{"env", "cartpole"},
                                                     {"view", "afterstates-boards"},
                                                     {"algo", "dreamer"},
                                                     {"lanes", "32"},
                                                     {"window", "16"},
                                                     {"scorer_units", "128"},
                                                     {"precision", "bf16"},
                                                     {"reuse", "3"}}) {
    EXPECT_NE(Key({setting}), usual) << setting.key;
  }
  const auto changed = [&](auto& what, auto value) {
    const auto before = what;
    what = value;
    const bool other = Key() != usual;
    what = before;
    return other;
  };
  EXPECT_TRUE(changed(cores_, 16));
  EXPECT_TRUE(changed(most_workers_, 1));
  EXPECT_TRUE(changed(processor_, "Intel Xeon"));
  EXPECT_TRUE(changed(options_.actors, 2));
  EXPECT_TRUE(changed(options_.workers, 1));
  EXPECT_TRUE(changed(options_.inference, "streamed"));
  EXPECT_TRUE(changed(options_.replay.device, "sim"));
}

TEST_F(SplitKeyTest, WhatAConfigFileSaysToActorsAndLearnerChangesIt) {
  const std::string usual = Key();
  std::string file = fs::temp_directory_path() / "tetrion-key-XXXXXX";
  const FileDescriptor made(mkstemp(file.data()));
  options_.config_file = file;
  std::ofstream(file) << "[run]\nseed = 3\n[up]\nactors = 2\n";
  EXPECT_EQ(Key(), usual);
  std::ofstream(file) << "[actor]\nrows = \"tcp\"\n";
  const std::string remote = Key();
  std::ofstream(file) << "[learner]\nrows_bind = \"tcp://127.0.0.1:0\"\n";
  EXPECT_NE(remote, usual);
  EXPECT_NE(Key(), usual);
  EXPECT_NE(Key(), remote);
  fs::remove(file);
}

TEST_F(SplitKeyTest, EveryCostlySettingIsOneThatMayChange) {
  RunConfig config;
  const std::vector<SettingField> fields = FieldsOf(config);
  for (const char* name : kCostlySettings) {
    const bool known = std::ranges::any_of(
        fields, [&](const SettingField& field) { return field.name == name && field.may_change; });
    EXPECT_TRUE(known) << name;
  }
}

}  // namespace
}  // namespace tetrion
