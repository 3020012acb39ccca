#include "lib/core/log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

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

TEST(LogTest, UnwritableFileIsAClearUsageError) {
  try {
    SetUpLogging({.service = "actor", .file = "/proc/nonexistent/log.txt"});
    FAIL() << "an unwritable file must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("/proc/nonexistent/log.txt"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
