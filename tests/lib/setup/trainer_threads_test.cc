#include "lib/setup/trainer_threads.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

TEST(TrainerThreadsTest, BatchesAreDividedAmongThreadsWhereThatMakesUpForWakingThem) {
  const auto threads = [](const std::vector<Setting>& given, int asked, int cpus) {
    return TrainerThreads(MakeRunConfig(given), asked, cpus);
  };
  for (const std::vector<Setting>& given : std::vector<std::vector<Setting>>{
           {}, {{"view", "planes"}}, {{"algo", "dreamer"}, {"env", "cartpole"}, {"size", "1m"}}}) {
    EXPECT_EQ(threads(given, 0, 2), 2);
    EXPECT_EQ(threads(given, 0, 64), 8);
  }
  for (const std::vector<Setting>& given :
       std::vector<std::vector<Setting>>{{{"env", "cartpole"}},
                                         {{"view", "planes"}, {"network", "conv"}},
                                         {{"algo", "dreamer"}, {"env", "cartpole"}}}) {
    EXPECT_EQ(threads(given, 0, 64), 1);
    EXPECT_EQ(threads(given, 3, 64), 3);
  }
}

}  // namespace
}  // namespace tetrion
