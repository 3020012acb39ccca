#include "services/learner/versions.h"

#include <gtest/gtest.h>

namespace tetrion::learner {
namespace {

TEST(VersionsTest, NothingIsAllowedBeforeABlockIsReserved) {
  const Versions versions;
  EXPECT_EQ(versions.After(0), 0U);
}

TEST(VersionsTest, ABlockIsUsedFromItsFirstToTheOneBeforeItsLimit) {
  Versions versions;
  versions.Allow(1001, 1004);
  EXPECT_EQ(versions.After(0), 1001U);
  EXPECT_EQ(versions.After(1001), 1002U);
  EXPECT_EQ(versions.After(1002), 1003U);
  EXPECT_EQ(versions.After(1003), 0U);
}

TEST(VersionsTest, ARaisedLimitLetsItGoOnWithoutAGap) {
  Versions versions;
  versions.Allow(1, 3);
  EXPECT_EQ(versions.After(2), 0U);
  versions.Allow(1, 1003);
  EXPECT_EQ(versions.After(2), 3U);
}

TEST(VersionsTest, VersionsInTheWeightsSlotAreNeverGivenAgain) {
  Versions versions;
  versions.Allow(1, 2000);
  EXPECT_EQ(versions.After(700), 701U);
}

TEST(VersionsTest, ALaterBlockSkipsWhatThePredecessorMayHaveUsed) {
  Versions versions;
  versions.Allow(1, 1001);
  versions.Allow(2001, 3001);
  EXPECT_EQ(versions.After(5), 2001U);
}

TEST(VersionsTest, NothingIsEverLowered) {
  Versions versions;
  versions.Allow(100, 200);
  versions.Allow(1, 150);
  versions.Allow(0, 0);
  EXPECT_EQ(versions.After(0), 100U);
  EXPECT_EQ(versions.After(198), 199U);
  EXPECT_EQ(versions.After(199), 0U);
}

TEST(VersionsTest, ZeroIsNoVersion) {
  Versions versions;
  versions.Allow(0, 10);
  EXPECT_EQ(versions.After(0), 1U);
}

}  // namespace
}  // namespace tetrion::learner
