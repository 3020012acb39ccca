#include "lib/cuda/sim/schedule.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lib/core/error.h"

namespace tetrion::cuda::sim {
namespace {

TEST(ScheduleTest, TextNamesOrderOrSeed) {
  for (const char* text : {"forward", "reverse", "0", "18446744073709551615"}) {
    EXPECT_EQ(ToText(ScheduleFromText(text)), text);
  }
  for (const char* text : {"", "backward", "-1", "1x", "18446744073709551616"}) {
    EXPECT_THROW(ScheduleFromText(text), Error) << text;
  }
}

TEST(ScheduleTest, TheEnvironmentGoesFirst) {
  const char* set = std::getenv(kScheduleVariable);
  const std::string before = set == nullptr ? "" : set;
  ASSERT_EQ(setenv(kScheduleVariable, "reverse", 1), 0);
  EXPECT_EQ(ToText(ScheduleFromEnvironment({Order::kRandom, 42})), "reverse");
  ASSERT_EQ(unsetenv(kScheduleVariable), 0);
  EXPECT_EQ(ToText(ScheduleFromEnvironment({Order::kRandom, 42})), "42");
  if (!before.empty()) (void)setenv(kScheduleVariable, before.c_str(), 1);
}

}  // namespace
}  // namespace tetrion::cuda::sim
