#include "lib/envs/cartpole/cartpole.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "lib/envs/cartpole/cartpole_rules.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

TEST(CartPoleEnvTest, StatesThatPlayDoesNotLeadToAreNotLoaded) {
  testing::RowedEnv rows({.name = "cartpole", .seed = 2});
  rows.env->Reset(0, {7, 0, 500});
  rows.StepAll();
  const std::vector<std::byte> saved = rows.env->Save(0);
  ASSERT_TRUE(rows.env->Load(0, saved, rows.row));
  // The four numbers are the last bytes of what is saved.
  const std::size_t numbers = saved.size() - sizeof(CartPoleState);
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> beyond = {
      {2.41, -5, 1e300, kNan}, {1e4, kNan}, {0.21, -1e300, kNan}, {-1e4, kNan}};
  for (std::size_t number = 0; number < beyond.size(); ++number) {
    for (const double value : beyond[number]) {
      std::vector<std::byte> wrong = saved;
      std::memcpy(wrong.data() + numbers + number * sizeof value, &value, sizeof value);
      EXPECT_FALSE(rows.env->Load(0, wrong, rows.row)) << number << ": " << value;
      EXPECT_EQ(rows.env->Save(0), saved) << "nothing has changed";
    }
  }
}

TEST(CartPoleEnvTest, StateOfAnEpisodeThatHasEndedIsLoadedBeyondTheTrack) {
  testing::RowedEnv rows({.name = "cartpole", .seed = 2});
  rows.env->Reset(0, {7, 0, 500});
  do rows.StepAll();
  while ((rows.row.flags[0] & kIsLast) == 0);
  const std::vector<std::byte> saved = rows.env->Save(0);
  EXPECT_TRUE(rows.env->Load(0, saved, rows.row));
  EXPECT_NE(rows.row.flags[0] & kIsLast, 0);
}

}  // namespace
}  // namespace tetrion
