#include "lib/run/config_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "tests/support/no_open_files.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ConfigFileTest : public ::testing::Test {
 protected:
  ConfigFileTest() {
    std::string pattern = fs::temp_directory_path() / "tetrion-config-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ConfigFileTest() override { fs::remove_all(folder_); }

  // What reading `path` is refused with.
  static std::string Refusal(const std::string& path, ExitCode code = ExitCode::kUsage) {
    try {
      (void)ReadConfigFile(path);
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code));
      return error.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(ConfigFileTest, WholeFileIsReadHoweverLongItIs) {
  std::ofstream file(folder_ + "/c.toml");
  for (int i = 0; i < 1000; ++i) file << "# a comment that fills a line\n";
  file << "[run]\nlanes = 7\n[run.vtrace]\ndiscount = 0.5\n";
  file.close();
  const ConfigSections sections = ReadConfigFile(folder_ + "/c.toml");
  ASSERT_EQ(sections.at("run").size(), 2U);
  EXPECT_EQ(sections.at("run")[0].key, "lanes");
  EXPECT_EQ(sections.at("run")[1].key, "vtrace.discount");
}

TEST_F(ConfigFileTest, ErrorsHaveFileAndLine) {
  std::ofstream(folder_ + "/c.toml") << "[run]\nlanes =\n";
  EXPECT_THAT(Refusal(folder_ + "/c.toml"), HasSubstr(folder_ + "/c.toml:2: "));
}

// It would be an empty file to the parser, and the run would have the defaults.
TEST_F(ConfigFileTest, FolderIsRefusedAsOne) {
  EXPECT_THAT(Refusal(folder_), AllOf(HasSubstr("cannot read the config file " + folder_),
                                      HasSubstr("it is a folder")));
}

TEST_F(ConfigFileTest, ReasonOfTheSystemIsTold) {
  EXPECT_THAT(Refusal(folder_ + "/none.toml"), HasSubstr("none.toml: No such file or directory"));
  EXPECT_THAT(Refusal(folder_ + "/" + std::string(300, 'x')), HasSubstr("File name too long"));
}

TEST_F(ConfigFileTest, WantOfOpenFilesIsForNowNotForGood) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  std::ofstream(folder_ + "/c.toml") << "[run]\n";
  const testing::NoOpenFiles none;
  EXPECT_THAT(Refusal(folder_ + "/c.toml", ExitCode::kTryAgain), HasSubstr("Too many open files"));
}

TEST_F(ConfigFileTest, FileOfAnotherUserIsRefusedWithThatReason) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const std::string path = folder_ + "/secret.toml";
  std::ofstream(path) << "[run]\n";
  fs::permissions(path, fs::perms::none);
  EXPECT_THAT(Refusal(path), HasSubstr("secret.toml: Permission denied"));
}

// As of `--config <(...)`: each service would read it anew, and find it empty.
TEST_F(ConfigFileTest, PipeIsRefusedAndNotWaitedFor) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Refusal(path), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace tetrion
