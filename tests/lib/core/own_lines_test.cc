#include "lib/core/own_lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace tetrion {
namespace {

// Beside memory of all kinds of sizes from the same heap.
TEST(OwnLinesTest, VectorsOfAFewBytesShareNoPairOfLinesWithAnyMemory) {
  std::vector<OwnLinesVector<std::uint8_t>> vectors;
  std::vector<std::vector<std::uint8_t>> others;
  std::map<std::uintptr_t, int> users;  // of a pair of lines
  for (std::size_t n = 1; n <= 128; ++n) {
    vectors.emplace_back(n);
    others.emplace_back(n % 24 + 1);
    const auto own = reinterpret_cast<std::uintptr_t>(vectors.back().data());
    EXPECT_EQ(own % kCacheLinePairBytes, 0U);
    users[own / kCacheLinePairBytes] += 1;
  }
  for (const auto& other : others) {
    const auto at = reinterpret_cast<std::uintptr_t>(other.data());
    for (const std::uintptr_t line :
         {at / kCacheLinePairBytes, (at + other.size() - 1) / kCacheLinePairBytes}) {
      if (users.contains(line)) users[line] += 1;
    }
  }
  EXPECT_EQ(users.size(), vectors.size());
  for (const auto& [line, count] : users) EXPECT_EQ(count, 1);
}

TEST(OwnLinesTest, AVectorGrowsAndKeepsWhatItHolds) {
  OwnLinesVector<int> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(i);
  const OwnLinesVector<int> copy = numbers;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(copy[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace tetrion
