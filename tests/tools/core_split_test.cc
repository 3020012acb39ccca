#include "tools/up/core_split.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace tetrion {

void PrintTo(const CoreSplit& split, std::ostream* out) {
  *out << split.workers << " workers, " << split.threads << " threads";
}

namespace {

using ::testing::ElementsAre;

using Speed = std::function<double(const CoreSplit&)>;

// The splits that are tried on a machine of that speed.
std::vector<CoreSplit> TriedBy(SplitSearch& search, const Speed& speed, double ring_wait = 0) {
  std::vector<CoreSplit> tried;
  while (const std::optional<CoreSplit> split = search.Next()) {
    tried.push_back(*split);
    search.Tell({.steps_per_s = speed(*split), .ring_wait = ring_wait});
  }
  return tried;
}

TEST(SplitSearchTest, RuleIsTriedFirstThenWorkersThenThreads) {
  SplitSearch search({2, 8}, {1, 1}, {16, 16});
  const auto tried = TriedBy(
      search, [](const CoreSplit& split) { return split == CoreSplit{2, 8} ? 100.0 : 50.0; });
  EXPECT_THAT(tried, ElementsAre(CoreSplit{2, 8}, CoreSplit{4, 8}, CoreSplit{1, 8},
                                 CoreSplit{2, 16}, CoreSplit{2, 4}));
  EXPECT_EQ(search.Best(), (CoreSplit{2, 8}));
}

TEST(SplitSearchTest, SlowEnvironmentGetsWorkersWhileTheyGain) {
  SplitSearch search({2, 8}, {1, 1}, {12, 16});
  const auto tried = TriedBy(search, [](const CoreSplit& split) { return 10.0 * split.workers; });
  EXPECT_THAT(tried,
              ElementsAre(CoreSplit{2, 8}, CoreSplit{4, 8}, CoreSplit{8, 8}, CoreSplit{12, 8},
                          CoreSplit{12, 16}, CoreSplit{12, 4}, CoreSplit{12, 2}, CoreSplit{12, 1}));
  EXPECT_EQ(search.Best(), (CoreSplit{12, 1}));
}

// However much faster it trains: they would take time from other programs of the machine.
TEST(SplitSearchTest, WorkersThatWaitForTheLearnerGetNoMoreBesideThem) {
  const auto most_workers = [](double ring_wait) {
    SplitSearch search({2, 8}, {1, 1}, {16, 16});
    int most = 0;
    for (const CoreSplit& split :
         TriedBy(search, [](const CoreSplit& one) { return 10.0 * one.workers; }, ring_wait)) {
      most = std::max(most, split.workers);
    }
    return most;
  };
  EXPECT_EQ(most_workers(0.1), 16);
  EXPECT_EQ(most_workers(0.3), 2);
}

TEST(SplitSearchTest, LargeNetworkGetsThreadsBesideTheFewestWorkers) {
  SplitSearch search({2, 8}, {1, 1}, {16, 16});
  const auto tried = TriedBy(search, [](const CoreSplit& split) { return 10.0 * split.threads; });
  EXPECT_THAT(tried,
              ElementsAre(CoreSplit{2, 8}, CoreSplit{4, 8}, CoreSplit{1, 8}, CoreSplit{1, 16}));
  EXPECT_EQ(search.Best(), (CoreSplit{1, 16}));
}

TEST(SplitSearchTest, TwoCoresNeedThreeTrials) {
  SplitSearch search({1, 2}, {1, 1}, {2, 2});
  const auto tried = TriedBy(search, [](const CoreSplit&) { return 100.0; });
  EXPECT_THAT(tried, ElementsAre(CoreSplit{1, 2}, CoreSplit{2, 2}, CoreSplit{1, 1}));
  EXPECT_EQ(search.Best(), (CoreSplit{1, 1}));
}

TEST(SplitSearchTest, NumberThatWasGivenStays) {
  SplitSearch search({3, 2}, {3, 1}, {3, 4});
  EXPECT_TRUE(search.HasChoice());
  const auto tried = TriedBy(search, [](const CoreSplit& split) { return 10.0 * split.threads; });
  EXPECT_THAT(tried, ElementsAre(CoreSplit{3, 2}, CoreSplit{3, 4}));
}

TEST(SplitSearchTest, OneCoreLeavesNoChoice) {
  const SplitSearch search({1, 1}, {1, 1}, {1, 1});
  EXPECT_FALSE(search.HasChoice());
}

// Of splits that are as fast: 96 of 100 is a tie, 94 is none.
TEST(SplitSearchTest, TieGoesToFewestWorkersThenFewestThreads) {
  const auto best_where_one_worker_has = [](double steps_per_s) {
    SplitSearch search({2, 2}, {1, 1}, {2, 2});
    TriedBy(search, [&](const CoreSplit& split) {
      if (split.workers == 2) return split.threads == 2 ? 100.0 : 96.0;
      return split.threads == 2 ? steps_per_s : 0.0;
    });
    return search.Best();
  };
  EXPECT_EQ(best_where_one_worker_has(96), (CoreSplit{1, 2}));
  EXPECT_EQ(best_where_one_worker_has(94), (CoreSplit{2, 1}));
}

// One step down may lose a little, and the next one again.
TEST(SplitSearchTest, StepsThatLoseLittleEachDoNotAddUp) {
  SplitSearch search({1, 8}, {1, 1}, {1, 8});
  TriedBy(search, [](const CoreSplit& split) {
    return split.threads == 8   ? 100.0
           : split.threads == 4 ? 96.0
           : split.threads == 2 ? 92.0
                                : 88.0;
  });
  EXPECT_EQ(search.Best(), (CoreSplit{1, 4}));
}

TEST(SplitSearchTest, SplitThatDidNotTrainIsNotTaken) {
  SplitSearch search({1, 2}, {1, 1}, {2, 2});
  TriedBy(search, [](const CoreSplit& split) { return split == CoreSplit{1, 2} ? 100.0 : 0.0; });
  EXPECT_EQ(search.Best(), (CoreSplit{1, 2}));
}

TEST(SplitSearchTest, TrialsHaveABound) {
  SplitSearch search({1, 1}, {1, 1}, {64, 256});
  const auto tried =
      TriedBy(search, [](const CoreSplit& split) { return 10.0 * split.workers * split.threads; });
  EXPECT_EQ(tried.size(), SplitSearch::kMostTrials);
  EXPECT_EQ(search.Best(), tried.back());
}

}  // namespace
}  // namespace tetrion
