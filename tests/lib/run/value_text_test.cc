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

}  // namespace
}  // namespace tetrion
