#include "services/coordinator/grants.h"

#include <gtest/gtest.h>

#include <limits>

namespace tetrion::coordinator {
namespace {

constexpr ReportLimits kLimits = {.max_steps = 100, .lanes = 8, .workers = 2, .version_limit = 50};

// What is impossible in a batch whose second episode is this one.
std::string Judge(const wire::EpisodeReport& episode) {
  return ImpossibleIn(wire::ReportBatch{1, 1, {{.token_id = 1}, episode}, 0}, kLimits);
}

TEST(ClaimsTest, LargestPossibleReportIsPossible) {
  EXPECT_EQ(Judge({.length_steps = 100, .policy_version = 49, .lane = 7, .worker = 1}), "");
  EXPECT_EQ(Judge({.episode_return = std::numeric_limits<float>::lowest()}), "");
  EXPECT_EQ(ImpossibleIn(wire::ReportBatch{}, kLimits), "");
}

TEST(ClaimsTest, FirstNumberThatIsNotPossibleIsNamedWithItsLimit) {
  EXPECT_EQ(Judge({.token_id = 9, .length_steps = 101}),
            "report of token 9: length 101 is not below 101");
  EXPECT_EQ(Judge({.token_id = 9, .lane = 8}), "report of token 9: lane 8 is not below 8");
  EXPECT_EQ(Judge({.token_id = 9, .worker = 2}), "report of token 9: worker 2 is not below 2");
  EXPECT_EQ(Judge({.token_id = 9, .policy_version = 50}),
            "report of token 9: policy version 50 is not below 50");
}

TEST(ClaimsTest, RequestsHaveNoGaps) {
  EXPECT_EQ(ImpossibleRequest(1, 0), "");
  EXPECT_EQ(ImpossibleRequest(7, 7), "");
  EXPECT_EQ(ImpossibleRequest(6, 7), "");
  EXPECT_EQ(ImpossibleRequest(8, 7), "");
  EXPECT_EQ(ImpossibleRequest(9, 7), "request 9 follows 7");
}

}  // namespace
}  // namespace tetrion::coordinator
