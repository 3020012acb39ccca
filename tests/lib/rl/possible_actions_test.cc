#include "lib/rl/possible_actions.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

TEST(PossibleActionsTest, ActionsOfTheEnvironmentPassAndOthersAreRefused) {
  CheckActions(std::vector<std::int32_t>{}, 3);
  CheckActions(std::vector<std::int32_t>{0, 2, 1}, 3);
  EXPECT_THROW(CheckActions(std::vector<std::int32_t>{0, 3}, 3), Error);
  EXPECT_THROW(CheckActions(std::vector<std::int32_t>{-1, 0}, 3), Error);
}

}  // namespace
}  // namespace tetrion
