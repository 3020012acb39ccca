#include "lib/rl/dreamer/lambda_return.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/golden.h"

namespace tetrion {
namespace {

constexpr float kReward[] = {0, 1, 2, 3};
constexpr float kBoot[] = {10, 20, 30, 40};
constexpr std::uint8_t kNever[] = {0, 0, 0, 0};
constexpr std::uint8_t kAtTwo[] = {0, 0, 1, 0};
constexpr double kDiscount = 1.0 - 1.0 / 333.0;

std::vector<float> Replayed(const std::uint8_t* last, const std::uint8_t* terminal, double discount,
                            double lambda) {
  std::vector<float> returns(3);
  ReplayedReturns({4, 1, kReward, last, terminal, kBoot}, discount, lambda, returns.data());
  return returns;
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * want[i]) << i;
}

TEST(LambdaReturn, ReplayedRowsMixBootstrapAndReturn) {
  ExpectNear(Replayed(kNever, kNever, 0.5, 0.5), {9.8125F, 15.25F, 23.0F});
}

TEST(LambdaReturn, NothingFollowsATerminalRow) {
  ExpectNear(Replayed(kAtTwo, kAtTwo, kDiscount, 0.95), {3.8912916F, 2.0F, 42.8798828F});
}

TEST(LambdaReturn, ACutEpisodeGoesOnWithItsBootstrap) {
  ExpectNear(Replayed(kAtTwo, kNever, kDiscount, 0.95), {32.2203751F, 31.9099102F, 42.8798828F});
}

TEST(LambdaReturn, ImaginedRowsUseTheChanceThatTheyGoOn) {
  const std::vector<float> cont(4, 0.9F);
  std::vector<float> returns(3);
  ImaginedReturns({3, 1, kReward, cont.data(), kBoot}, 0.95, returns.data());
  ExpectNear(returns, {33.2742157F, 36.6949921F, 38.9999962F});
}

TEST(LambdaReturn, SequencesDoNotMix) {
  // Two sequences side by side: the second is the first times ten.
  const std::vector<float> reward = {0, 0, 1, 10, 2, 20, 3, 30};
  const std::vector<float> value = {10, 100, 20, 200, 30, 300, 40, 400};
  const std::vector<float> cont(8, 0.9F);
  std::vector<float> returns(6);
  ImaginedReturns({3, 2, reward.data(), cont.data(), value.data()}, 0.95, returns.data());
  ExpectNear(returns, {33.2742157F, 332.742157F, 36.6949921F, 366.949921F, 38.9999962F, 390.0F});
}

TEST(LambdaReturn, ARowCountsByTheChanceThatItIsReached) {
  const std::vector<float> cont = {0.5F, 1.0F, 0.5F, 0.0F, 0.1F, 0.1F};
  std::vector<float> weights(4);
  ImaginedWeights({2, 2, nullptr, cont.data(), nullptr}, weights.data());
  EXPECT_EQ(weights, (std::vector<float>{0.5F, 1.0F, 0.25F, 0.0F}));
}

void ExpectGolden(const std::vector<float>& got, const std::string& name) {
  const std::vector<float>& want = testing::Golden(name).data;
  ASSERT_EQ(got.size(), want.size()) << name;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-6 * std::max(1.0F, std::abs(want[i]))) << name << " " << i;
  }
}

TEST(LambdaReturn, ManySequencesAreTheFormulas) {
  if (!testing::HasGolden("returns.reward")) GTEST_SKIP() << testing::kNoCase;
  constexpr int kSteps = 7, kLanes = 5;
  const auto column = [](const char* name) -> const std::vector<float>& {
    return testing::Golden(std::string("returns.") + name).data;
  };
  std::vector<float> returns(kLanes * (kSteps - 1));
  const ImaginedRows imagined = {kSteps - 1, kLanes, column("reward").data(), column("cont").data(),
                                 column("value").data()};
  ImaginedReturns(imagined, 0.95, returns.data());
  ExpectGolden(returns, "returns.imagined");
  ImaginedWeights(imagined, returns.data());
  ExpectGolden(returns, "returns.weight");
  const std::vector<std::uint8_t> last(column("last").begin(), column("last").end());
  const std::vector<std::uint8_t> terminal(column("terminal").begin(), column("terminal").end());
  ReplayedReturns({kSteps, kLanes, column("reward").data(), last.data(), terminal.data(),
                   column("value").data()},
                  kDiscount, 0.95, returns.data());
  ExpectGolden(returns, "returns.replayed");
}

}  // namespace
}  // namespace tetrion
