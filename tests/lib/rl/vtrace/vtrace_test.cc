#include "lib/rl/vtrace/vtrace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

// Random rows 0..T of B lanes; flags are set by the tests.
struct Rows {
  Rows(int step_count, int lane_count, std::uint64_t seed) : steps(step_count), lanes(lane_count) {
    const auto cells = static_cast<std::size_t>((steps + 1) * lanes);
    for (std::size_t i = 0; i < cells; ++i) {
      const PhiloxBlock draw = PhiloxDraw(seed, i, 0, PhiloxPurpose::kSampler);
      behaviour.push_back(static_cast<float>(-2 * UnitDraw(draw.word[0])));
      log_prob.push_back(static_cast<float>(-2 * UnitDraw(draw.word[1])));
      value.push_back(static_cast<float>(4 * UnitDraw(draw.word[2]) - 2));
      reward.push_back(static_cast<float>(2 * UnitDraw(draw.word[3]) - 1));
    }
    cont.assign(cells, 1.0F);
    flags.assign(cells, 0);
    for (auto* out : {&target, &advantage, &unweighted, &rho}) {
      out->assign(static_cast<std::size_t>(steps * lanes), NAN);
    }
  }
  std::size_t At(int t, int lane) const { return static_cast<std::size_t>(t * lanes + lane); }
  // The episode of `lane` ends at row t; the next row, if any, starts another.
  void End(int t, int lane, bool terminated) {
    flags[At(t, lane)] |=
        static_cast<std::uint8_t>(kIsLast | (terminated ? kTerminated : kTruncated));
    if (terminated) cont[At(t, lane)] = 0.0F;
    if (t == steps) return;
    flags[At(t + 1, lane)] |= kIsFirst;
    reward[At(t + 1, lane)] = 0.0F;
  }
  VtraceSummary Run(const VtraceConstants& constants) {
    return ComputeVtrace(constants,
                         {.steps = steps,
                          .lanes = lanes,
                          .behaviour_log_prob = behaviour.data(),
                          .log_prob = log_prob.data(),
                          .value = value.data(),
                          .reward = reward.data(),
                          .cont = cont.data(),
                          .flags = flags.data()},
                         {target.data(), advantage.data(), unweighted.data(), rho.data()});
  }

  int steps, lanes;
  std::vector<float> behaviour, log_prob, value, reward, cont;
  std::vector<std::uint8_t> flags;
  std::vector<float> target, advantage, unweighted, rho;
};

VtraceConstants Discounted(double discount) {
  return {.discount = discount, .lambda = 1.0, .rho_clip = 1.0, .c_clip = 1.0};
}

// The definition as a sum over the future of one (t, lane), in double and without recursion over
// targets: v_t = V_t + sum_{k >= t} (prod_{i=t}^{k-1} gamma_{i+1} c_i) delta_k.
double SlowTarget(const VtraceConstants& constants, const Rows& rows, int t, int lane) {
  double sum = rows.value[rows.At(t, lane)];
  double product = 1;
  for (int k = t; k < rows.steps; ++k) {
    const std::size_t now = rows.At(k, lane), next = rows.At(k + 1, lane);
    const bool last = (rows.flags[now] & kIsLast) != 0;
    const double ratio =
        last ? 0 : std::exp(static_cast<double>(rows.log_prob[now]) - rows.behaviour[now]);
    const double gamma = constants.discount * rows.cont[next];
    const double delta = std::min(constants.rho_clip, ratio) *
                         (rows.reward[next] + gamma * rows.value[next] - rows.value[now]);
    sum += product * delta;
    product *= gamma * constants.lambda * std::min(constants.c_clip, ratio);
  }
  return sum;
}

void ExpectMatchesDefinition(const VtraceConstants& constants, Rows& rows) {
  rows.Run(constants);
  for (int t = 0; t < rows.steps; ++t) {
    for (int lane = 0; lane < rows.lanes; ++lane) {
      const std::size_t now = rows.At(t, lane), next = rows.At(t + 1, lane);
      EXPECT_NEAR(rows.target[now], SlowTarget(constants, rows, t, lane), 1e-5) << t << " " << lane;
      const bool last = (rows.flags[now] & kIsLast) != 0;
      const double ratio =
          last ? 0 : std::exp(static_cast<double>(rows.log_prob[now]) - rows.behaviour[now]);
      const double rho = std::min(constants.rho_clip, ratio);
      const double plain =
          rows.reward[next] +
          constants.discount * rows.cont[next] * SlowTarget(constants, rows, t + 1, lane) -
          rows.value[now];
      EXPECT_NEAR(rows.rho[now], rho, 1e-5);
      EXPECT_NEAR(rows.advantage[now], rho * plain, 1e-5);
      EXPECT_NEAR(rows.unweighted[now], last ? 0 : plain, 1e-5);
    }
  }
}

constexpr VtraceConstants kUsualConstants = {
    .discount = 0.997, .lambda = 1.0, .rho_clip = 1.0, .c_clip = 1.0};
constexpr VtraceConstants kUnusualConstants = {
    .discount = 0.9, .lambda = 0.8, .rho_clip = 1.4, .c_clip = 0.7};

TEST(VtraceTest, MatchesTheDefinitionWithinOneEpisode) {
  for (const auto& [steps, lanes] :
       {std::pair{1, 1}, std::pair{1, 5}, std::pair{7, 1}, std::pair{32, 6}}) {
    for (const VtraceConstants& constants : {kUsualConstants, kUnusualConstants}) {
      Rows rows(steps, lanes, 11);
      ExpectMatchesDefinition(constants, rows);
    }
  }
}

TEST(VtraceTest, MatchesTheDefinitionWithTruncationTerminationAndTwoEpisodes) {
  for (const VtraceConstants& constants : {kUsualConstants, kUnusualConstants}) {
    Rows rows(12, 5, 12);
    rows.End(5, 0, /*terminated=*/false);
    rows.End(5, 1, /*terminated=*/true);
    rows.End(3, 2, true);
    rows.End(8, 2, false);
    rows.End(12, 3, true);  // ends on the bootstrap row
    rows.End(0, 4, false);  // the window begins with a last row
    rows.End(11, 4, true);
    ExpectMatchesDefinition(constants, rows);
  }
}

TEST(VtraceTest, TruncationBootstrapsFromTheLastObservationAndTerminationFromNothing) {
  for (const bool terminated : {false, true}) {
    Rows rows(3, 1, 13);
    rows.behaviour = rows.log_prob;
    rows.End(2, 0, terminated);
    rows.Run(Discounted(0.5));
    const double bootstrap = terminated ? 0.0 : 0.5 * rows.value[2];
    EXPECT_NEAR(rows.target[1], rows.reward[2] + bootstrap, 1e-6);
    EXPECT_EQ(rows.target[2], rows.value[2]);
    EXPECT_EQ(rows.advantage[2], 0.0F);
  }
}

TEST(VtraceTest, NothingOfALaterEpisodeReachesAnEarlierOne) {
  Rows rows(8, 1, 14), changed(8, 1, 14);
  rows.End(4, 0, false);
  changed.End(4, 0, false);
  for (int t = 5; t <= 8; ++t) changed.value[changed.At(t, 0)] += 100.0F;
  rows.Run(kUsualConstants);
  changed.Run(kUsualConstants);
  for (int t = 0; t <= 4; ++t) EXPECT_EQ(rows.target[rows.At(t, 0)], changed.target[rows.At(t, 0)]);
  EXPECT_NE(rows.target[6], changed.target[6]);
}

TEST(VtraceTest, OnPolicyWithLambdaOneIsTheDiscountedReturn) {
  Rows rows(4, 1, 15);
  rows.behaviour = rows.log_prob;
  rows.Run(Discounted(0.9));
  double expected = rows.value[4];
  for (int t = 3; t >= 0; --t) {
    expected = rows.reward[rows.At(t + 1, 0)] + 0.9 * expected;
    EXPECT_NEAR(rows.target[rows.At(t, 0)], expected, 1e-5);
  }
}

TEST(VtraceTest, SummaryCountsValidRowsAndClippedRatios) {
  Rows rows(3, 2, 16);
  rows.behaviour.assign(rows.behaviour.size(), -1.0F);
  rows.log_prob.assign(rows.log_prob.size(), -1.0F - std::log(2.0F));  // ratio 1/2
  rows.log_prob[rows.At(0, 1)] = 0.0F;                                 // ratio e: clipped to 1
  rows.End(1, 0, true);
  const VtraceSummary summary = rows.Run(kUsualConstants);
  EXPECT_EQ(summary.valid, 5);
  EXPECT_NEAR(summary.clipped_fraction, 0.2, 1e-12);
  EXPECT_NEAR(summary.mean_rho, (1.0 + 4 * 0.5) / 5, 1e-6);
}

TEST(VtraceTest, WindowOfLastRowsOnlyHasNoValidRow) {
  Rows rows(1, 2, 17);
  rows.End(0, 0, true);
  rows.End(0, 1, false);
  const VtraceSummary summary = rows.Run(kUsualConstants);
  EXPECT_EQ(summary.valid, 0);
  EXPECT_EQ(summary.mean_rho, 0.0);
  EXPECT_EQ(rows.target[0], rows.value[0]);
}

TEST(SymlogTest, CompressesSymmetrically) {
  EXPECT_EQ(Symlog(0.0F), 0.0F);
  EXPECT_NEAR(Symlog(40.0F), std::log(41.0), 1e-6);
  EXPECT_EQ(Symlog(-40.0F), -Symlog(40.0F));
}

}  // namespace
}  // namespace tetrion
