#include "lib/nn/init.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/philox.h"

namespace tetrion {
namespace {

// Standard normal number `index` of a stream (Box-Muller on one Philox block).
double Normal(std::uint64_t seed, std::uint64_t stream, std::uint32_t index) {
  const PhiloxBlock draw = PhiloxDraw(seed, stream, index, PhiloxPurpose::kLatents);
  const double radius = std::sqrt(-2.0 * std::log1p(-UnitDraw(draw.word[0])));
  return radius * std::cos(2.0 * std::numbers::pi * UnitDraw(draw.word[1]));
}

double Dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void OrthogonalInit(std::span<float> weight, std::int64_t rows, std::int64_t columns, double gain,
                    std::uint64_t seed, std::uint64_t stream) {
  TETRION_CHECK(weight.size() == static_cast<std::size_t>(rows * columns),
                "shape must fill the span");
  const bool tall = rows > columns;
  const std::int64_t count = tall ? columns : rows;   // vectors
  const std::int64_t length = tall ? rows : columns;  // of each
  std::vector<double> basis(static_cast<std::size_t>(count * length));
  for (std::size_t i = 0; i < basis.size(); ++i) {
    basis[i] = Normal(seed, stream, static_cast<std::uint32_t>(i));
  }
  // Modified Gram-Schmidt, twice per vector for full precision.
  for (std::int64_t v = 0; v < count; ++v) {
    double* vector = basis.data() + v * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t u = 0; u < v; ++u) {
        const double* other = basis.data() + u * length;
        const double overlap = Dot(vector, other, length);
        for (std::int64_t i = 0; i < length; ++i) vector[i] -= overlap * other[i];
      }
    }
    const double norm = std::sqrt(Dot(vector, vector, length));
    for (std::int64_t i = 0; i < length; ++i) vector[i] /= norm;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at = tall ? c * length + r : r * length + c;
      weight[static_cast<std::size_t>(r * columns + c)] =
          static_cast<float>(gain * basis[static_cast<std::size_t>(at)]);
    }
  }
}

}  // namespace tetrion
