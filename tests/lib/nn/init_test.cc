#include "lib/nn/init.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tetrion {
namespace {

TEST(OrthogonalInitTest, ShorterSideIsOrthonormalTimesGain) {
  for (const auto& [rows, columns] :
       {std::pair{6, 20}, std::pair{20, 6}, std::pair{8, 8}, std::pair{1, 5}}) {
    std::vector<float> weight(static_cast<std::size_t>(rows * columns));
    OrthogonalInit(weight, rows, columns, 2.0, 1, 4);
    const bool tall = rows > columns;
    const int count = tall ? columns : rows, length = tall ? rows : columns;
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b <= a; ++b) {
        double dot = 0;
        for (int i = 0; i < length; ++i) {
          const auto at = [&](int v) {
            return static_cast<double>(
                weight[static_cast<std::size_t>(tall ? i * columns + v : v * columns + i)]);
          };
          dot += at(a) * at(b);
        }
        EXPECT_NEAR(dot, a == b ? 4.0 : 0.0, 1e-5);
      }
    }
  }
}

TEST(OrthogonalInitTest, StreamsDiffer) {
  std::vector<float> a(12), b(12);
  OrthogonalInit(a, 3, 4, 1.0, 1, 1);
  OrthogonalInit(b, 3, 4, 1.0, 1, 2);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace tetrion
