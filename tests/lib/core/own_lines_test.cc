#include "lib/core/own_lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tetrion {
namespace {

TEST(OwnLinesTest, VectorsOfAFewBytesShareNoPairOfLines) {
  std::vector<OwnLinesVector<std::uint8_t>> vectors;
  for (std::size_t n = 1; n <= 64; ++n) vectors.emplace_back(n);
  std::vector<std::uintptr_t> lines;
  for (const auto& vector : vectors) {
    const auto at = reinterpret_cast<std::uintptr_t>(vector.data());
    EXPECT_EQ(at % kCacheLinePairBytes, 0U);
    lines.push_back(at / kCacheLinePairBytes);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(lines[i], lines[k]);
  }
}

TEST(OwnLinesTest, AVectorGrowsAndKeepsWhatItHolds) {
  OwnLinesVector<int> numbers;
  for (int i = 0; i < 1000; ++i) numbers.push_back(i);
  const OwnLinesVector<int> copy = numbers;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(copy[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace tetrion
