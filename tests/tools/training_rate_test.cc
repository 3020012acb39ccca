#include "tools/up/training_rate.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

class TrainingRateTest : public ::testing::Test {
 protected:
  // Steps trained a second, once they are known.
  std::optional<double> Look(double elapsed_s, double updates, double steps) {
    RunStatus status;
    status.elapsed_s = elapsed_s;
    status.learner = {{"updates", updates}, {"steps_trained", steps}};
    status.actor = {{"workers", 2}, {"wait_ring_s", wait_ring_s_}};
    const std::optional<TrainingSpeed> speed = rate_.Look(status);
    if (!speed) return std::nullopt;
    ring_wait_ = speed->ring_wait;
    return speed->steps_per_s;
  }

  TrainingRate rate_;
  double wait_ring_s_ = 0;
  double ring_wait_ = -1;
};

TEST_F(TrainingRateTest, WindowBeginsAfterTheWarmUpThatFollowsTheFirstUpdate) {
  EXPECT_FALSE(Look(1, 0, 0));
  EXPECT_FALSE(Look(5, 0, 0));
  EXPECT_FALSE(Look(6, 10, 1000));
  EXPECT_FALSE(Look(7.9, 30, 9000));
  EXPECT_FALSE(Look(8, 40, 10'000));  // the window begins
  EXPECT_FALSE(Look(10.9, 90, 15'000));
  EXPECT_EQ(Look(12, 100, 18'000), 2000);
}

TEST_F(TrainingRateTest, StatusWithoutNewStepsIsNoEndOfTheWindow) {
  Look(1, 10, 100);
  Look(3, 20, 1000);
  EXPECT_FALSE(Look(6, 30, 1000));
  EXPECT_FALSE(Look(6.5, 30, 1000));
  EXPECT_EQ(Look(7, 40, 1800), 200);
}

TEST_F(TrainingRateTest, SlowUpdatesGetALongerWindowWithAnEnd) {
  Look(1, 1, 100);
  Look(3, 2, 200);
  EXPECT_FALSE(Look(8, 3, 300));
  EXPECT_FALSE(Look(22.9, 10, 1000));
  EXPECT_EQ(Look(23, 11, 1200), 50);
}

TEST_F(TrainingRateTest, NewLearnerBeginsTheMeasurementAnew) {
  Look(1, 10, 1000);
  Look(3, 20, 5000);
  EXPECT_FALSE(Look(7, 21, 100));  // its predecessor would have been measured here
  EXPECT_FALSE(Look(8, 30, 200));
  EXPECT_FALSE(Look(10, 50, 400));
  EXPECT_EQ(Look(13, 80, 1000), 200);
}

TEST_F(TrainingRateTest, WaitForRingsIsAShareOfAllWorkersTime) {
  wait_ring_s_ = 1;
  Look(1, 10, 1000);
  wait_ring_s_ = 5;
  Look(3, 20, 5000);
  wait_ring_s_ = 8;
  EXPECT_TRUE(Look(7, 90, 9000));
  EXPECT_EQ(ring_wait_, 3.0 / (4 * 2));
}

TEST_F(TrainingRateTest, ActorThatCountsAnewHasNotWaited) {
  Look(1, 10, 1000);
  wait_ring_s_ = 5;
  Look(3, 20, 5000);
  wait_ring_s_ = 1;
  EXPECT_TRUE(Look(7, 90, 9000));
  EXPECT_EQ(ring_wait_, 0);
}

TEST_F(TrainingRateTest, StatusOfARunWithoutALearnerTellsNothing) {
  EXPECT_FALSE(rate_.Look(RunStatus()));
}

}  // namespace
}  // namespace tetrion
