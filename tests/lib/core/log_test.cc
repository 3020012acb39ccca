#include "lib/core/log.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// stderr of this process as a pipe, while it lives.
class StderrPipe {
 public:
  StderrPipe() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(fds_), 0);
    dup2(fds_[1], STDERR_FILENO);
    close(fds_[1]);
    alarm(60);  // the property: no log call blocks
  }
  ~StderrPipe() {
    alarm(0);
    dup2(before_, STDERR_FILENO);
    SetUpLogging({.service = "test"});
    close(before_);
    close(fds_[0]);
  }
  // What one read gives; blocks when there is nothing.
  std::string Read() {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(read(fds_[0], text.data(), text.size())));
    return text;
  }

 private:
  const int before_;
  int fds_[2] = {-1, -1};
};

std::string LastLine(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) last = line;
  return last;
}

TEST(LogTest, JsonLineIsValidJsonWhateverTheMessageHolds) {
  const auto file = std::filesystem::temp_directory_path() / "tetrion_log_test.jsonl";
  std::filesystem::remove(file);
  SetUpLogging({.service = "actor",
                .run = "my \"run\" 100%",
                .id = "actor-0",
                .json = true,
                .file = file.string()});
  log::info("a \"quoted\"\nline with a tab\t and 50% {}", "{braces}");
  const auto line = nlohmann::json::parse(LastLine(file));
  EXPECT_EQ(line["service"], "actor");
  EXPECT_EQ(line["run"], "my \"run\" 100%");
  EXPECT_EQ(line["id"], "actor-0");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["message"], "a \"quoted\"\nline with a tab\t and 50% {braces}");
  SetUpLogging({.service = "test"});
  std::filesystem::remove(file);
}

TEST(LogTest, ReaderThatStandsStillCostsLinesAndNoTime) {
  StderrPipe pipe;
  SetUpLogging({.service = "actor"});
  const std::uint64_t before = LostLogLines();
  constexpr int kLines = 10'000;
  for (int i = 0; i < kLines; ++i) log::info("line {}", i);
  const std::uint64_t lost = LostLogLines() - before;
  EXPECT_GT(lost, 0U);
  const std::string first = pipe.Read();
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(first.begin(), first.end(), '\n')),
            kLines - lost);
  EXPECT_THAT(first, EndsWith("\n"));
  log::info("the reader is back");
  const std::string then = pipe.Read();
  EXPECT_THAT(then, HasSubstr("W [actor] log lines lost here: " + std::to_string(lost) + ";"));
  EXPECT_THAT(then, EndsWith("[actor] the reader is back\n"));
  log::info("again");
  EXPECT_THAT(pipe.Read(), EndsWith("I [actor] again\n"));
  EXPECT_EQ(LostLogLines() - before, lost);
}

TEST(LogTest, JsonStaysOneObjectALineAfterALineWasTorn) {
  StderrPipe pipe;
  SetUpLogging({.service = "actor", .json = true});
  log::info("{}", std::string(1 << 20, 'x'));
  (void)pipe.Read();
  log::info("next");
  std::istringstream lines(pipe.Read());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "");  // ends the torn one
  std::getline(lines, line);
  EXPECT_THAT(nlohmann::json::parse(line)["message"], HasSubstr("log lines lost here: 1;"));
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["message"], "next");
}

TEST(LogTest, FullDiskUnderTheFileIsCountedAndEndsNothing) {
  SetUpLogging({.service = "actor", .file = "/dev/full"});
  const std::uint64_t before = LostLogLines();
  for (int i = 0; i < 3; ++i) log::info("to a full disk");
  EXPECT_EQ(LostLogLines() - before, 3U);
  SetUpLogging({.service = "test"});
}

TEST(LogTest, UnwritableFileIsAClearUsageError) {
  try {
    SetUpLogging({.service = "actor", .file = "/proc/nonexistent/log.txt"});
    FAIL() << "an unwritable file must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("/proc/nonexistent/log.txt"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("choose another --log-file"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
