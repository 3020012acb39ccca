#include "lib/setup/run_choice.h"

#include <gmock/gmock.h>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const RunChoice& choice) {
  try {
    CheckRunChoice(choice);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(RunChoiceTest, ARunIsEitherNewOrGoneOnWith) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal({.run = "a", .init_from = "b"}), "");
  EXPECT_EQ(Refusal({.resume = "latest"}), "");
  EXPECT_THAT(Refusal({.run = "a", .resume = "a"}), HasSubstr("--run starts a new run"));
  EXPECT_THAT(Refusal({.resume = "a", .init_from = "b"}),
              HasSubstr("--init-from begins a new run"));
}

TEST(RunChoiceTest, StopAfterIsJudgedBeforeAnythingIsMade) {
  EXPECT_EQ(Refusal({.stop_after = "30s"}), "");
  EXPECT_THAT(Refusal({.stop_after = "soon"}), HasSubstr("--stop-after 'soon'"));
}

TEST(RunChoiceTest, EveryOptionReachesItsField) {
  RunChoice choice;
  ServiceOptions parser("tetrion-test", "", "A program.");
  AddRunChoice(parser, choice);
  const char* argv[] = {"p",  "--run",      "a", "--init-from", "b", "--stop-after",
                        "1h", "--runs-dir", "c", "--shm-dir",   "d", "--resume",
                        "e",  "--lanes",    "3"};
  EXPECT_EQ(parser.Parse(static_cast<int>(std::size(argv)), argv), std::nullopt);
  EXPECT_EQ(choice.run + choice.init_from + choice.runs_dir + choice.shm_dir + choice.resume,
            "abcde");
  EXPECT_EQ(choice.stop_after, "1h");
  ASSERT_EQ(choice.given.size(), 1U);
  EXPECT_EQ(choice.given[0].key, "lanes");
}

}  // namespace
}  // namespace tetrion
