#include "lib/setup/tensor_library.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

using Given = std::vector<Setting>;

bool IsNeededFor(const Given& given) {
  return NeedsTensorLibrary(MakeRunConfig(given));
}

RunConfig DreamerRun() {
  return MakeRunConfig(Given{{"env", "cartpole"}, {"algo", "dreamer"}});
}

TEST(TensorLibraryTest, RunsNeedItForDreamerAndForNetworkConvAlone) {
  for (const char* env : {"cartpole", "catch", "tetris", "tetris-placement"}) {
    EXPECT_FALSE(IsNeededFor({{"env", env}})) << env;
  }
  EXPECT_FALSE(IsNeededFor({{"env", "tetris-placement"}, {"view", "planes"}}));
  EXPECT_TRUE(NeedsTensorLibrary(DreamerRun()));
  EXPECT_TRUE(IsNeededFor({{"env", "tetris"}, {"view", "planes"}, {"network", "conv"}}));
}

TEST(TensorLibraryTest, ProgramGoesOnWhereTheRunDoesWithoutItOrItIsThere) {
  ASSERT_EQ(unsetenv("TETRION_SCRIPT"), 0);
  EXPECT_NO_THROW(
      RequireTensorLibrary(MakeRunConfig(Given{{"env", "cartpole"}}), "tetrion-up", {}, false));
  EXPECT_NO_THROW(RequireTensorLibrary(DreamerRun(), "tetrion-up", {}, true));
}

TEST(TensorLibraryTest, ProgramThatNoScriptHasStartedSaysWhatToDo) {
  ASSERT_EQ(unsetenv("TETRION_SCRIPT"), 0);
  try {
    RequireTensorLibrary(DreamerRun(), "tetrion-up", {}, false);
    ADD_FAILURE() << "a run without what it needs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    const std::string said = error.what();
    EXPECT_EQ(said.find("algo dreamer needs the tensor library"), 0U) << said;
    EXPECT_NE(said.find("./tetrion install wheels"), std::string::npos) << said;
  }
}

TEST(TensorLibraryTest, ScriptThatIsGoneIsNamed) {
  ASSERT_EQ(setenv("TETRION_SCRIPT", "/no such folder/tetrion", 1), 0);
  try {
    RequireTensorLibrary(DreamerRun(), "tetrion-up", {}, false);
    ADD_FAILURE() << "a run without what it needs";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/no such folder/tetrion"), std::string::npos);
  }
  unsetenv("TETRION_SCRIPT");
}

// In a child, which becomes the script; that writes what it was called with.
TEST(TensorLibraryTest, ProgramBecomesTheScriptThatStartedItWithItsOwnArguments) {
  std::string folder = std::filesystem::temp_directory_path() / "tetrion-script-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string script = folder + "/tetrion", said = folder + "/said";
  std::ofstream(script) << "#!/bin/sh\nprintf '%s|' \"$@\" >'" << said << "'\nexit 7\n";
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("TETRION_SCRIPT", script.c_str(), 1);
    const char* const words[] = {"--algo", "dreamer", "--run", "a name", ""};
    try {
      RequireTensorLibrary(DreamerRun(), "tetrion-up", words, false);
    } catch (...) {
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  std::ostringstream words;
  words << std::ifstream(said).rdbuf();
  std::filesystem::remove_all(folder);
  EXPECT_EQ(words.str(), "with-tensor-library|tetrion-up|--algo|dreamer|--run|a name||");
}

}  // namespace
}  // namespace tetrion
