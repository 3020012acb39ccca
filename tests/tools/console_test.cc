#include "tools/up/console.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tetrion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kStatus =
    R"({"run":"r","env":"cartpole","phase":"running","elapsed_s":75.5,"actors":2,"env_steps":1234567,)"
    R"("env_steps_per_s":56789.5,"episodes":4321,"episodes_per_s":12.5,"return_mean":123.25,)"
    R"("return_best":500,"lines_mean":0,"length_mean":123.25,)"
    R"("stop_after":{"seconds":120,"steps":0,"progress":0.625},"actor":{"wait_token_s":1.5,"wait_ring_s":30},)"
    R"("learner":{"updates":987,"updates_per_s":13.5,"loss":0.125,"entropy":0.5,"replay_rows":64,)"
    R"("replay_capacity_rows":128,"lag_p50":1,"lag_p99":3}})";

RunStatus Sample() {
  return ParseStatus(kStatus).value();
}

TEST(RunStatusTest, ReadsTheCoordinatorsPage) {
  const RunStatus status = Sample();
  EXPECT_EQ(status.run, "r");
  EXPECT_EQ(status.actors, 2);
  EXPECT_EQ(status.env_steps, 1234567);
  EXPECT_EQ(status.stop_progress, 0.625);
  EXPECT_EQ(status.Learner("updates"), 987);
  EXPECT_EQ(status.Actor("wait_ring_s"), 30);
  EXPECT_EQ(status.Trainer("lag_p99"), 3);
  EXPECT_EQ(status.Actor("wait_answer_s"), 0);  // not on the page
}

TEST(RunStatusTest, MissingAndOddFieldsAreDefaults) {
  const RunStatus status =
      ParseStatus(
          R"({"run":3,"env_steps":"many","return_mean":null,"learner":[],"stop_after":{"seconds":0}})")
          .value();
  EXPECT_EQ(status.run, "");
  EXPECT_EQ(status.env_steps, 0);
  EXPECT_EQ(status.return_mean, 0);
  EXPECT_TRUE(status.learner.empty());
  EXPECT_EQ(status.stop_progress, std::nullopt);
  for (const char* text : {"", "[]", "3", "{", "{}x"})
    EXPECT_EQ(ParseStatus(text), std::nullopt) << text;
}

TEST(RunStatusTest, LastWholeLineOfTheMetricsFileCounts) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("tetrion-jsonl-" + std::to_string(getpid()));
  EXPECT_FALSE(LastStatusOf(path).has_value());
  std::ofstream(path) << "{\"env_steps\":1}\n{\"env_steps\":2}\n{\"env_st";
  EXPECT_EQ(LastStatusOf(path).value().env_steps, 2);
  std::ofstream(path) << "{\"env_steps\":1,\"phase\":\"" << std::string(3 << 20, 'x')
                      << "\"}\n{\"env_steps\":2}\n{\"env_steps\":3}\n";
  EXPECT_EQ(LastStatusOf(path).value().env_steps, 3);
  std::filesystem::remove(path);
}

TEST(RunStatusTest, FiguresOfMembersThatHaveLeftAreRemembered) {
  const RunStatus later =
      ParseStatus(R"({"env_steps":2000000,"learner":{},"actor":{"wait_ring_s":31}})").value();
  const RunStatus followed = Follow(Sample(), later);
  EXPECT_EQ(followed.env_steps, 2000000);
  EXPECT_EQ(followed.Learner("updates"), 987);
  EXPECT_EQ(followed.Actor("wait_ring_s"), 31);
  EXPECT_EQ(followed.Actor("wait_token_s"), 0);
  EXPECT_EQ(Follow(std::nullopt, later).Learner("updates"), 0);
}

TEST(ConsoleTextTest, NumbersAndTimesAreShort) {
  EXPECT_EQ(HumanNumber(0), "0");
  EXPECT_EQ(HumanNumber(0.125), "0.12");
  EXPECT_EQ(HumanNumber(-3.5), "-3.50");
  EXPECT_EQ(HumanNumber(9999), "9999");
  EXPECT_EQ(HumanNumber(10000), "10.0 k");
  EXPECT_EQ(HumanNumber(1234567), "1.23 M");
  EXPECT_EQ(HumanNumber(5e9), "5.00 G");
  EXPECT_EQ(HumanSeconds(-1), "0s");
  EXPECT_EQ(HumanSeconds(59.9), "59s");
  EXPECT_EQ(HumanSeconds(60), "1m00s");
  EXPECT_EQ(HumanSeconds(3725), "1h02m");
}

TEST(ConsoleTextTest, TableShowsEveryFigureWithinAHundredColumns) {
  const std::string table = StatusTable(Sample(), 2);
  for (const char* part :
       {"cartpole", "1.23 M", "56.8 k/s", "actors 2 of 2", "4321", "best 500", "987",
        "entropy 0.500", "50%", "lag p50 1 p99 3", "ring 30", "62% of --stop-after"}) {
    EXPECT_THAT(table, HasSubstr(part));
  }
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  RunStatus endless = Sample();
  endless.stop_progress.reset();
  EXPECT_THAT(StatusTable(endless, 2), HasSubstr("until Ctrl-C"));
}

TEST(ConsoleTextTest, LinesStandBesideTheirRateAndSkippedUpdatesAreShown) {
  RunStatus status = Sample();
  EXPECT_THAT(StatusLine(status), Not(HasSubstr("per 1000 steps")));
  EXPECT_THAT(StatusLine(status), Not(HasSubstr("skipped")));
  status.lines_mean = 30;
  status.length_mean = 100;
  status.learner["skipped_updates"] = 7;
  for (const std::string& text : {StatusLine(status), StatusTable(status, 2)}) {
    EXPECT_THAT(text, HasSubstr("lines 30 (300 per 1000 steps)"));
    EXPECT_THAT(text, HasSubstr("skipped 7"));
  }
}

// The learner tells a rate from its second figures on.
TEST(ConsoleTextTest, RateOfUpdatesIsShownOnceItIsKnown) {
  RunStatus status = Sample();
  EXPECT_THAT(StatusLine(status), HasSubstr("updates 987 (13.50/s)  actors"));
  EXPECT_THAT(StatusTable(status, 2), HasSubstr("13.50/s   loss"));
  status.learner["updates_per_s"] = 0;
  EXPECT_THAT(StatusLine(status), HasSubstr("updates 987  actors"));
  EXPECT_THAT(StatusTable(status, 2), HasSubstr("987" + std::string(18, ' ') + "loss"));
}

TEST(ConsoleTest, PlainLinesBeginWithTheFirstUpdateAndComeEveryTenSeconds) {
  FakeClock clock;
  Console console(/*terminal=*/false, clock);
  RunStatus status = Sample();
  status.learner["updates"] = 0;
  EXPECT_EQ(console.Show(status, 1), "");
  clock.AdvanceMs(60'000);
  EXPECT_EQ(console.Show(status, 1), "");
  status.learner["updates"] = 1;
  EXPECT_THAT(console.Show(status, 1), HasSubstr("steps 1.23 M"));
  clock.AdvanceMs(9'999);
  EXPECT_EQ(console.Show(status, 1), "");
  clock.AdvanceMs(1);
  const std::string line = console.Show(status, 1);
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(ConsoleTest, TableStandsBelowWhatOthersHavePrintedSince) {
  FakeClock clock;
  Console console(/*terminal=*/true, clock);
  console.Show(Sample(), 1, {.lines_between = 3});
  clock.AdvanceMs(1000);
  EXPECT_THAT(console.Show(Sample(), 1, {.lines_between = 3}), HasSubstr("\x1b"));
  clock.AdvanceMs(1000);
  EXPECT_THAT(console.Show(Sample(), 1, {.lines_between = 4}), Not(HasSubstr("\x1b")));
  clock.AdvanceMs(1000);
  EXPECT_THAT(console.Show(Sample(), 1, {.lines_between = 4}), HasSubstr("\x1b"));
}

TEST(ConsoleTest, LinesAreNoLongerThanTheScreenIsWide) {
  FakeClock clock;
  Console console(/*terminal=*/true, clock);
  const std::string whole = StatusTable(Sample(), 1);
  const std::string cut = console.Show(Sample(), 1, {.columns = 40});
  std::istringstream wide(whole), narrow(cut);
  int lines = 0;
  for (std::string line, expected; std::getline(wide, expected); ++lines) {
    ASSERT_TRUE(std::getline(narrow, line));
    EXPECT_EQ(line, expected.substr(0, 40));
  }
  EXPECT_EQ(lines, std::count(cut.begin(), cut.end(), '\n'));
  clock.AdvanceMs(1000);
  EXPECT_THAT(console.Show(Sample(), 1, {.columns = 1000}), HasSubstr(whole));
}

TEST(ConsoleTest, TableIsDrawnOverTheOneBefore) {
  FakeClock clock;
  Console console(/*terminal=*/true, clock);
  const std::string first = console.Show(Sample(), 2);
  EXPECT_THAT(first, StartsWith("run r"));
  EXPECT_EQ(console.Show(Sample(), 2), "");
  clock.AdvanceMs(1000);
  const auto lines = std::count(first.begin(), first.end(), '\n');
  EXPECT_EQ(console.Show(Sample(), 2), "\x1b[" + std::to_string(lines) + "A\x1b[J" + first);
}

TEST(SummaryTest, NamesFiguresCheckpointAndTheCommandsThatGoOn) {
  SummaryInput input = {Sample(), "r", "runs", "/x/checkpoints/987.safetensors", 75.5};
  const std::string text = SummaryText(input);
  for (const char* part :
       {"1.23 M env steps", "4321 episodes", "987 updates in 1m15s", "mean 123.25",
        "/x/checkpoints/987.safetensors", "./tetrion up --resume r\n", "./tetrion eval r\n",
        "./tetrion play r\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  input.runs_dir = "/else/where";
  input.checkpoint = "";
  EXPECT_THAT(SummaryText(input), HasSubstr("--resume r --runs-dir /else/where\n"));
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("eval")));
}

TEST(SummaryTest, FailedRunSaysWhatFailedAndWhereItsLogIs) {
  SummaryInput input = {.run = "r", .runs_dir = "runs", .wall_s = 11, .exit_code = 78};
  input.failed = "learner";
  input.log = "/x/logs/learner.log";
  EXPECT_EQ(SummaryText(input),
            "\nrun r FAILED after 11s (exit status 78): learner ended; see /x/logs/learner.log\n");
  input.checkpoint = "/x/checkpoints/987.safetensors";  // of a start that nothing is known of
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("env steps")));
  EXPECT_THAT(SummaryText(input), Not(HasSubstr("--resume")));
  input.checkpoint = "";
  input.status = Sample();  // it had trained: what there is can be gone on with
  EXPECT_THAT(SummaryText(input),
              AllOf(HasSubstr("FAILED"), HasSubstr("updates in"), HasSubstr("--resume r\n")));
}

}  // namespace
}  // namespace tetrion
