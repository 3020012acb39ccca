#include "lib/core/random.h"

#include <gtest/gtest.h>

#include <set>

namespace tetrion {
namespace {

TEST(RandomTest, NumbersDifferAndUseEveryBit) {
  std::set<std::uint64_t> seen;
  std::uint64_t ones = 0, zeros = 0;
  for (int i = 0; i < 256; ++i) {
    const std::uint64_t bits = RandomBits();
    seen.insert(bits);
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(seen.size(), 256U);
  EXPECT_EQ(ones, ~std::uint64_t{0});
  EXPECT_EQ(zeros, ~std::uint64_t{0});
}

}  // namespace
}  // namespace tetrion
