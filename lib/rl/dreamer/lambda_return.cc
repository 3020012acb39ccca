#include "lib/rl/dreamer/lambda_return.h"

#include <cstddef>

namespace tetrion {

void ImaginedReturns(const ImaginedRows& rows, double lambda, float* returns) {
  const auto n = static_cast<std::size_t>(rows.starts);
  const auto mix = static_cast<float>(lambda);
  for (int k = rows.horizon - 1; k >= 0; --k) {
    const std::size_t now = static_cast<std::size_t>(k) * n, next = now + n;
    // Behind the last row follows its value.
    const float* later = k == rows.horizon - 1 ? rows.value + next : returns + next;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = rows.value[next + i];
      returns[now + i] =
          rows.reward[next + i] + rows.cont[next + i] * (value + mix * (later[i] - value));
    }
  }
}

void ImaginedWeights(const ImaginedRows& rows, float* weights) {
  const auto n = static_cast<std::size_t>(rows.starts);
  const std::size_t cells = static_cast<std::size_t>(rows.horizon) * n;
  for (std::size_t i = 0; i < cells; ++i) {
    weights[i] = i < n ? rows.cont[i] : weights[i - n] * rows.cont[i];
  }
}

void ReplayedReturns(const ReplayedRows& rows, double discount, double lambda, float* returns) {
  const auto b = static_cast<std::size_t>(rows.lanes);
  for (int t = rows.steps - 2; t >= 0; --t) {
    const std::size_t now = static_cast<std::size_t>(t) * b, next = now + b;
    const float* later = t == rows.steps - 2 ? rows.boot + next : returns + next;
    for (std::size_t i = 0; i < b; ++i) {
      const double mix = rows.is_last[next + i] != 0 ? 0.0 : lambda;
      const double cont = rows.is_terminal[next + i] != 0 ? 0.0 : discount;
      returns[now + i] = static_cast<float>(
          rows.reward[next + i] + cont * ((1.0 - mix) * rows.boot[next + i] + mix * later[i]));
    }
  }
}

}  // namespace tetrion
