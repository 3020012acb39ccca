#include "tools/keygen/keygen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/wire/curve_keys.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeygenTest : public ::testing::Test {
 protected:
  KeygenTest() {
    std::string pattern = fs::temp_directory_path() / "tetrion-keygen-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern + "/keys";
  }
  ~KeygenTest() override { fs::remove_all(fs::path(folder_).parent_path()); }

  // What it printed, or the usage error's text.
  std::string Run(std::vector<const char*> arguments) const {
    arguments.insert(arguments.begin(), "tetrion-keygen");
    std::ostringstream out;
    try {
      EXPECT_EQ(RunKeygen(static_cast<int>(arguments.size()), arguments.data(), out), 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return out.str();
  }
  mode_t ModeOf(const std::string& path) const {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  std::string Public(const std::string& name) const {
    return wire::ReadPublicKey(folder_ + "/" + name + ".pub");
  }

  std::string folder_;
};

TEST_F(KeygenTest, EveryNameGetsAPairOfItsOwn) {
  const std::string said = Run({folder_.c_str(), "coordinator", "actor-0"});
  EXPECT_THAT(said, AllOf(HasSubstr("coordinator.secret"), HasSubstr("actor-0.pub")));
  EXPECT_EQ(ModeOf(folder_), 0700U);
  EXPECT_EQ(ModeOf(folder_ + "/actor-0.secret"), 0400U);
  EXPECT_EQ(ModeOf(folder_ + "/actor-0.pub"), 0644U);
  const auto keys = wire::CurveKeys::ReadSecret(folder_ + "/actor-0.secret");
  EXPECT_EQ(keys.public_key, Public("actor-0"));
  EXPECT_NE(Public("actor-0"), Public("coordinator"));
  EXPECT_THAT(said, Not(HasSubstr(keys.secret_key)));
}

TEST_F(KeygenTest, ExistingKeyStopsBeforeAnyIsMade) {
  Run({folder_.c_str(), "actor"});
  const std::string before = Public("actor");
  EXPECT_THAT(Run({folder_.c_str(), "learner", "actor"}),
              AllOf(HasSubstr("actor.secret exists, no key was made"), HasSubstr("--force")));
  EXPECT_EQ(Public("actor"), before);
  EXPECT_FALSE(fs::exists(folder_ + "/learner.pub"));
  fs::remove(folder_ + "/actor.secret");
  EXPECT_THAT(Run({folder_.c_str(), "actor"}), HasSubstr("actor.pub exists"));
}

TEST_F(KeygenTest, ForceReplacesThePair) {
  Run({folder_.c_str(), "actor"});
  const std::string before = Public("actor");
  Run({folder_.c_str(), "actor", "--force"});
  EXPECT_NE(Public("actor"), before);
  EXPECT_EQ(wire::CurveKeys::ReadSecret(folder_ + "/actor.secret").public_key, Public("actor"));
}

TEST_F(KeygenTest, NameThatIsGivenTwiceStopsBeforeAnyIsMade) {
  const std::string why = "'a' is given twice";
  EXPECT_THAT(Run({folder_.c_str(), "a", "b", "a"}), HasSubstr(why));
  EXPECT_THAT(Run({folder_.c_str(), "a", "a", "--force"}), HasSubstr(why));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(KeygenTest, WrongUseSaysWhatIsRight) {
  EXPECT_THAT(Run({}), HasSubstr("usage: ./tetrion keygen DIR NAME..."));
  EXPECT_THAT(Run({folder_.c_str()}), HasSubstr("a name for each process"));
  EXPECT_THAT(Run({folder_.c_str(), "a/b"}), HasSubstr("'a/b' does not"));
  EXPECT_THAT(Run({folder_.c_str(), ".hidden"}), HasSubstr("begins with no '.'"));
  EXPECT_THAT(Run({folder_.c_str(), "a", "--fore"}), HasSubstr("unknown option --fore"));
  EXPECT_THAT(Run({"/nowhere/at/all", "a"}), HasSubstr("cannot make the folder /nowhere/at/all"));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(KeygenTest, HelpAndVersionMakeNothing) {
  EXPECT_THAT(Run({"--help"}), HasSubstr("usage:"));
  EXPECT_THAT(Run({"--version"}), HasSubstr("tetrion-keygen"));
}

}  // namespace
}  // namespace tetrion
