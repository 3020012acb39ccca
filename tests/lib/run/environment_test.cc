#include "lib/run/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class EnvironmentTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Variable& variable : OptionVariables()) names.push_back(variable.name);
    return names;
  }

  static constexpr const char* kNames[] = {"TETRION_LANES",
                                           "TETRION_LANSE",
                                           "TETRION_SHM_DIR",
                                           "TETRION_JOBS",
                                           "TETRION_DEFAULT_RUNS_DIR",
                                           "XTETRION_LANES"};
};

TEST_F(EnvironmentTest, AVariableIsTheOptionInCapitals) {
  EXPECT_EQ(VariableFor("ring-rows"), "TETRION_RING_ROWS");
  setenv("TETRION_SHM_DIR", "/shm=x", 1);
  const std::vector<Variable> variables = OptionVariables();
  ASSERT_EQ(variables.size(), 1U);
  EXPECT_EQ(variables[0].option, "shm-dir");
  EXPECT_EQ(variables[0].value, "/shm=x");
}

TEST_F(EnvironmentTest, EmptyOnesAndThoseOfTheScriptsAreNone) {
  setenv("TETRION_LANES", "", 1);
  setenv("TETRION_JOBS", "3", 1);
  setenv("TETRION_DEFAULT_RUNS_DIR", "/r", 1);
  setenv("XTETRION_LANES", "3", 1);
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(EnvironmentTest, OptionsOfEveryProgramAreKnown) {
  for (const char* option :
       {"config", "lanes", "reuse", "checkpoint-every", "actors", "http-bind"}) {
    EXPECT_TRUE(IsOptionOfSomeProgram(option)) << option;
  }
  EXPECT_FALSE(IsOptionOfSomeProgram("lanse"));
  EXPECT_THAT(UnknownVariableText({"TETRION_LANSE", "lanse", "3"}),
              HasSubstr("TETRION_LANSE, which no program reads; did you mean TETRION_LANES?"));
  EXPECT_THAT(UnknownVariableText(
                  {"TETRION_COORDINATOR_SERVICE_HOST", "coordinator-service-host", "10.0.0.1"}),
              Not(HasSubstr("mean")));
}

TEST_F(EnvironmentTest, ForgettingTakesOptionsAlone) {
  for (const char* name : kNames) setenv(name, "3", 1);
  ForgetOptionVariables();
  EXPECT_THAT(Names(), ElementsAre("TETRION_LANSE"));
  EXPECT_NE(std::getenv("TETRION_JOBS"), nullptr);
}

TEST_F(EnvironmentTest, ANoteNamesTheVariablesOfTheOptionsInAComplaint) {
  RememberUse({"TETRION_LANES", "lanes", "8"});
  RememberUse({"TETRION_RUN", "run", "a"});
  EXPECT_EQ(NoteOnVariables("the coordinator refused: lanes: here 8, the run has 64"),
            " (lanes is from TETRION_LANES)");
  EXPECT_EQ(NoteOnVariables("run setting lanes = '8': no"), " (lanes is from TETRION_LANES)");
  EXPECT_EQ(NoteOnVariables("--run starts a new run, --lanes=8 does not"),
            " (lanes is from TETRION_LANES, run is from TETRION_RUN)");
  EXPECT_EQ(NoteOnVariables("TETRION_LANES=8: expected less lanes: 4"), "");
  EXPECT_EQ(NoteOnVariables("a run has lanes; --run-folder and --max-lanes say more"), "");
}

}  // namespace
}  // namespace tetrion
