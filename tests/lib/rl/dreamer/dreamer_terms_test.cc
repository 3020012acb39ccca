#include "lib/rl/dreamer/dreamer_terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tetrion {
namespace {

std::vector<float> Numbers() {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < kDreamerNumbers.size(); ++i) {
    numbers.push_back(static_cast<float>(i + 1));
  }
  return numbers;
}

TEST(DreamerTerms, NumbersBecomeFiguresAndTheirWeighedSum) {
  DreamerSettings settings;
  settings.reconstruction_scale = 10;
  UpdateStats stats;
  EXPECT_EQ(ReadDreamerNumbers(settings, Numbers(), stats), "");
  EXPECT_EQ(Figure(stats, "reconstruction_loss"), 1);
  EXPECT_EQ(Figure(stats, "imagined_return"), 6);
  EXPECT_EQ(Figure(stats, "return_scale"), 15);
  EXPECT_NEAR(Figure(stats, "loss"), 10 + 2 + 3 + 4 + 0.1 * 5 + 7 + 8 + 0.3 * 9, 1e-6);
}

TEST(DreamerTerms, TheFirstNumberThatIsNotFiniteIsNamed) {
  std::vector<float> numbers = Numbers();
  numbers[7] = std::nanf("");
  UpdateStats stats;
  EXPECT_EQ(ReadDreamerNumbers({}, numbers, stats), "the value loss");
  EXPECT_EQ(Figure(stats, "policy_loss"), 7);
  EXPECT_EQ(Figure(stats, "replay_value_loss"), 0);
  numbers[5] = INFINITY;
  EXPECT_EQ(ReadDreamerNumbers({}, numbers, stats), "an imagined return");
}

TEST(DreamerTerms, ANumberThatIsOnlyToldForbidsNothing) {
  std::vector<float> numbers = Numbers();
  numbers.back() = std::nanf("");
  UpdateStats stats;
  EXPECT_EQ(ReadDreamerNumbers({}, numbers, stats), "");
}

}  // namespace
}  // namespace tetrion
