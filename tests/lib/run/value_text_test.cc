#include "lib/run/value_text.h"

#include <gtest/gtest.h>

#include "lib/core/error.h"

namespace tetrion {
namespace {

TEST(StopAfterTest, TimesAndStepsAreRead) {
  EXPECT_EQ(ParseStopAfter("30s").seconds, 30);
  EXPECT_EQ(ParseStopAfter("2m").seconds, 120);
  EXPECT_EQ(ParseStopAfter("1.5h").seconds, 5400);
  EXPECT_EQ(ParseStopAfter("50000000steps").steps, 50'000'000U);
  EXPECT_EQ(ParseStopAfter("5e7steps").steps, 50'000'000U);
  EXPECT_EQ(ParseStopAfter("").steps, 0U);
}

TEST(StopAfterTest, AnythingElseIsAUsageErrorWithTheForms) {
  for (const char* text : {"10", "s", "-3s", "0s", "3d", "steps", "1 m", "2mm"}) {
    EXPECT_THROW(ParseStopAfter(text), Error) << text;
  }
}

// docs/options.md (tools/up/options_doc.py) says these.
TEST(FlagTest, WordsOfAFlagAreTheDocumentedOnesAlone) {
  bool value = false;
  for (const char* word : {"1", "true", "on", "yes"}) {
    EXPECT_TRUE(ParseValue(word, value) && value) << word;
  }
  for (const char* word : {"0", "false", "off", "no"}) {
    EXPECT_TRUE(ParseValue(word, value) && !value) << word;
  }
  for (const char* word : {"", "y", "n", "t", "f", "True", "YES", "2", "enable", " 1"}) {
    EXPECT_FALSE(ParseValue(word, value)) << word;
  }
}

}  // namespace
}  // namespace tetrion
