#include "lib/rl/dreamer/tensor_returns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/rl/dreamer/lambda_return.h"
#include "tests/lib/nn/test_envs.h"

// Returns by the tensor library against those that are tested against the formulas.
namespace tetrion {
namespace {

using torch::Tensor;

constexpr std::int64_t kTimes = 7, kSequences = 5;
constexpr double kLambda = 0.95, kDiscount = 0.99;

Tensor Noise(std::int64_t rows, std::uint64_t seed) {
  return torch::tensor(testing::Noise(static_cast<std::size_t>(rows * kSequences), seed))
      .reshape({rows, kSequences});
}

TEST(TensorReturns, OfImaginedRowsAreTheFormulas) {
  const Tensor reward = Noise(kTimes + 1, 1), value = Noise(kTimes + 1, 2),
               cont = torch::sigmoid(Noise(kTimes + 1, 3));
  const Tensor returns = torch::empty({kTimes, kSequences}),
               weights = torch::empty({kTimes, kSequences});
  const ImaginedRows rows = {.horizon = kTimes,
                             .starts = kSequences,
                             .reward = reward.const_data_ptr<float>(),
                             .cont = cont.const_data_ptr<float>(),
                             .value = value.const_data_ptr<float>()};
  ImaginedReturns(rows, kLambda, returns.mutable_data_ptr<float>());
  ImaginedWeights(rows, weights.mutable_data_ptr<float>());
  EXPECT_TRUE(torch::allclose(ImaginedReturnsOf(reward.narrow(0, 1, kTimes), cont, value, kLambda),
                              returns, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(ImaginedWeightsOf(cont), weights, 1e-6, 0));
}

TEST(TensorReturns, OfPlayedRowsAreTheFormulasAcrossEndsOfEpisodes) {
  const Tensor reward = Noise(kTimes, 1), boot = Noise(kTimes, 2);
  std::vector<std::uint8_t> last(kTimes * kSequences, 0), terminal(last);
  const Tensor not_last = torch::ones({kTimes, kSequences}),
               alive = torch::ones({kTimes, kSequences});
  // Lane 1 is cut at row 3, lane 2 ends at row 4, lane 3 at the last row.
  const auto end = [&](std::int64_t row, std::int64_t lane, bool dies) {
    const auto cell = static_cast<std::size_t>(row * kSequences + lane);
    last[cell] = 1;
    terminal[cell] = dies ? 1 : 0;
    not_last[row][lane] = 0.0F;
    if (dies) alive[row][lane] = 0.0F;
  };
  end(3, 1, false);
  end(4, 2, true);
  end(kTimes - 1, 3, true);
  const Tensor returns = torch::empty({kTimes - 1, kSequences});
  ReplayedReturns({kTimes, kSequences, reward.const_data_ptr<float>(), last.data(), terminal.data(),
                   boot.const_data_ptr<float>()},
                  kDiscount, kLambda, returns.mutable_data_ptr<float>());
  EXPECT_TRUE(torch::allclose(ReplayedReturnsOf(reward, not_last, alive, boot, kDiscount, kLambda),
                              returns, 1e-5, 1e-6));
}

}  // namespace
}  // namespace tetrion
