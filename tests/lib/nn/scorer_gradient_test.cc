#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "tests/lib/nn/autograd.h"
#include "tests/lib/nn/test_envs.h"

// The kernels of the networks scorer and columns and their gradients are written by hand. Here the
// same networks are tensor operations in double, and every element is compared with automatic
// differentiation.

namespace tetrion {
namespace {

using testing::Double, testing::Weights, testing::WeightsOf, testing::WorstShare;
using torch::Tensor;

constexpr int kActions = 40;
constexpr std::uint64_t kSeed = 11;

std::size_t At(int state, int action) {
  return static_cast<std::size_t>(state * kActions + action);
}

// Inputs of n states and the loss's slopes. Some placements of a state look alike, as those of
// symmetric pieces do; state 2 of every 5 has no legal action.
struct Case {
  Case(const EnvSpec& reads, int states, int scorer_units = kScorerUnits,
       Precision factors = Precision::kF32)
      : env(reads),
        n(states),
        units(scorer_units),
        precision(factors),
        view(testing::RandomViews(env, n, kSeed)),
        grad_logits(testing::Noise(Size(kActions), kSeed + 1)),
        grad_value(testing::Noise(Size(1), kSeed + 2)) {
    for (int i = 0; i < n; ++i) {
      const PhiloxBlock draw =
          PhiloxDraw(kSeed, static_cast<std::uint64_t>(i), 3, PhiloxPurpose::kSampler);
      const std::uint64_t bits = std::uint64_t{draw.word[0]} << 20 | draw.word[1] >> 12;
      mask.push_back(i % 5 == 2 ? 0 : bits & ((std::uint64_t{1} << kActions) - 1));
      const int floats = env.obs.action_floats;
      float* after = view.data() + i * env.obs.view_floats;
      for (int a = 1; a < kActions; a += 3) {
        std::copy_n(after + (a - 1) * floats, floats, after + a * floats);
      }
    }
  }
  std::size_t Size(std::int64_t of_one) const { return static_cast<std::size_t>(n * of_one); }

  const EnvSpec env;
  const int n, units;
  const Precision precision;
  std::vector<float> view, grad_logits, grad_value;
  std::vector<std::uint64_t> mask;
};

std::unique_ptr<Network> Make(const Case& c, int threads) {
  auto network = MakeNetwork({.seed = 3,
                              .max_states = c.n,
                              .training = true,
                              .threads = threads,
                              .scorer_units = c.units,
                              .precision = c.precision},
                             c.env);
  const std::vector<float> noise = testing::Noise(network->parameters().size(), 77);
  for (std::size_t i = 0; i < noise.size(); ++i) network->parameters()[i] += 0.1F * noise[i];
  return network;
}

// After a pass forward and back over all of the case.
std::unique_ptr<Network> Differentiated(const Case& c, int threads) {
  auto network = Make(c, threads);
  std::vector<float> logits(c.Size(kActions)), value(c.Size(1));
  network->Forward(c.view.data(), c.mask.data(), c.n, logits.data(), value.data());
  network->Backward(c.grad_logits.data(), c.grad_value.data());
  return network;
}

struct Reference {
  Tensor logits, value;                // [n, 40], [n] f64
  std::map<std::string, Tensor> grad;  // by parameter name
};

// Network scorer: afterstates [n, 40, F] and state [n, S] to logits [n, 40] and value [n].
std::pair<Tensor, Tensor> ScorerOf(Weights& w, const Tensor& after, const Tensor& state) {
  Tensor h = torch::matmul(after, w["score.after.weight"]) +
             (torch::matmul(state, w["score.state.weight"]) + w["score.1.bias"]).unsqueeze(1);
  h = torch::silu(torch::matmul(torch::silu(h), w["score.2.weight"]) + w["score.2.bias"]);
  Tensor v = torch::silu(torch::matmul(state, w["value.1.weight"]) + w["value.1.bias"]);
  v = torch::silu(torch::matmul(v, w["value.2.weight"]) + w["value.2.bias"]);
  return {torch::matmul(h, w["score.3.weight"]) + w["score.3.bias"],
          torch::matmul(v, w["value.3.weight"]) + w["value.3.bias"]};
}

// A BoardNet: columns [m, C] and what stands beside them [m, E] to [m].
Tensor BoardNetOf(Weights& w, const std::string& name, const Tensor& columns, const Tensor& rest) {
  const auto of = [&](const char* piece) { return w.at(name + piece); };
  const Tensor wall =
      torch::full({columns.size(0), 1}, double{(1 << kBoardRows) - 1}, torch::kFloat64);
  const Tensor padded = torch::cat({wall, columns, wall}, 1).to(torch::kInt64).unsqueeze(2);
  const Tensor cells =
      torch::bitwise_and(torch::bitwise_right_shift(padded, torch::arange(kBoardRows)), 1)
          .to(torch::kFloat64);
  const std::int64_t count = columns.size(1);
  const Tensor windows = torch::cat(
      {cells.narrow(1, 0, count), cells.narrow(1, 1, count), cells.narrow(1, 2, count)}, 2);
  Tensor h = torch::silu(torch::matmul(windows, of(".column.1.weight")) + of(".column.1.bias"));
  h = torch::silu(torch::matmul(h, of(".column.2.weight")) + of(".column.2.bias"));
  h = torch::matmul(h.sum(1) * 0.25, of(".board.weight")) +
      torch::matmul(rest, of(".rest.weight")) + of(".board.bias");
  return torch::matmul(torch::silu(h), of(".head.weight")) + of(".head.bias");
}

// Network columns.
std::pair<Tensor, Tensor> ColumnsOf(Weights& w, const Tensor& after, const Tensor& state,
                                    std::int64_t columns) {
  const Tensor rest = state.narrow(1, columns, state.size(1) - columns);
  const Tensor rows = after.reshape({-1, after.size(2)});
  const Tensor beside = torch::cat(
      {rows.narrow(1, columns, rows.size(1) - columns), rest.repeat_interleave(kActions, 0)}, 1);
  return {BoardNetOf(w, "score", rows.narrow(1, 0, columns), beside),
          BoardNetOf(w, "value", state.narrow(1, 0, columns), rest)};
}

Reference Differentiate(const Case& c, const Network& network) {
  Weights w = WeightsOf(network);
  const Tensor view = Double(c.view, {c.n, c.env.obs.view_floats});
  const std::int64_t floats = c.env.obs.action_floats, cut = kActions * floats;
  const Tensor after = view.narrow(1, 0, cut).reshape({c.n, kActions, floats});
  const Tensor state = view.narrow(1, cut, c.env.obs.view_floats - cut);
  const int columns = c.env.obs.board_columns;
  const auto [logits, value] =
      columns > 0 ? ColumnsOf(w, after, state, columns) : ScorerOf(w, after, state);
  Reference reference;
  reference.logits = logits.reshape({c.n, kActions});
  reference.value = value.reshape({c.n});
  std::vector<float> slopes = c.grad_logits;  // a masked logit has none
  for (std::size_t cell = 0; cell < slopes.size(); ++cell) {
    if ((c.mask[cell / kActions] >> (cell % kActions) & 1) == 0) slopes[cell] = 0;
  }
  const Tensor loss = (reference.logits * Double(slopes, {c.n, kActions})).sum() +
                      (reference.value * Double(c.grad_value, {c.n})).sum();
  loss.backward();
  for (auto& [name, tensor] : w) reference.grad[name] = tensor.grad();
  return reference;
}

struct Batch {
  EnvSpec env;
  int states;
  int units = kScorerUnits;
  Precision precision = Precision::kF32;
};

Case CaseOf(const Batch& batch) {
  return {batch.env, batch.states, batch.units, batch.precision};
}

class ScorerGradientTest : public ::testing::TestWithParam<Batch> {};

// f32 sums of up to 80,000 terms: 1e-5 of a tensor's largest element was measured; with factors of
// bf16 4.2e-3 of a logit and 1.9e-3 of a gradient. A lost row of 64 would be 1e-2.
TEST_P(ScorerGradientTest, EveryElementEqualsAutomaticDifferentiationInDouble) {
  const Case c = CaseOf(GetParam());
  const bool rounds = &BestDenseKernels(c.precision) != &BestDenseKernels();
  const double near = rounds ? 1e-2 : 1e-5, near_slope = rounds ? 6e-3 : 1e-4;
  const Reference reference = Differentiate(c, *Make(c, 1));
  for (const int threads : {1, 2, 3}) {
    const auto network = Make(c, threads);
    std::vector<float> logits(c.Size(kActions)), value(c.Size(1));
    network->Forward(c.view.data(), c.mask.data(), c.n, logits.data(), value.data());
    for (std::size_t cell = 0; cell < logits.size(); ++cell) {
      const bool legal = (c.mask[cell / kActions] >> (cell % kActions) & 1) != 0;
      const auto row = static_cast<std::int64_t>(cell / kActions);
      const auto action = static_cast<std::int64_t>(cell % kActions);
      ASSERT_NEAR(logits[cell], legal ? reference.logits[row][action].item<double>() : kMaskedLogit,
                  near)
          << "state " << row << " action " << action;
      if (cell > 4000) break;  // one by one is slow; the gradients see them all
    }
    EXPECT_LT(WorstShare(value.data(), reference.value), near);
    network->Backward(c.grad_logits.data(), c.grad_value.data());
    for (const ParameterInfo& info : network->layout()) {
      EXPECT_LT(WorstShare(network->gradients().data() + info.offset, reference.grad.at(info.name)),
                near_slope)
          << info.name << " with " << threads << " threads";
    }
  }
}

// bf16 has 8 bits: 257 would be 256 there. As wide as layers that are rounded.
TEST(ScorerPrecisionTest, NumbersOfTheStateAreNeverRounded) {
  const EnvSpec env = testing::LongStateEnv();
  const auto network = MakeNetwork({.max_states = 2, .precision = Precision::kBf16}, env);
  const std::vector<float> noise = testing::Noise(network->parameters().size(), 77);
  for (std::size_t i = 0; i < noise.size(); ++i) network->parameters()[i] += 0.1F * noise[i];
  const auto floats = static_cast<std::size_t>(env.obs.view_floats);
  std::vector<float> view(2 * floats, 0.5F);
  view[floats - 1] = 256.0F;
  view[2 * floats - 1] = 257.0F;
  const std::vector<std::uint64_t> mask = {1, 1};
  std::vector<float> logits(2 * kActions), value(2);
  network->Infer(view.data(), mask.data(), 2, logits.data(), value.data());
  EXPECT_NE(value[0], value[1]);
  EXPECT_NE(logits[0], logits[kActions]);
}

// Whichever thread takes a chunk, and however many there are.
TEST_P(ScorerGradientTest, GradientDoesNotDependOnThreadsBitForBit) {
  const Case c = CaseOf(GetParam());
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto network = Differentiated(c, threads);
      const std::vector<float> gradient(network->gradients().begin(), network->gradients().end());
      if (first.empty()) first = gradient;
      ASSERT_EQ(gradient, first) << threads << " threads";
    }
  }
}

// What a policy that has learnt has: nearly all of the slope lies on few placements. The others are
// left out, and are what the cost of a backward pass is about.
TEST(ScorerSparseGradientTest, NegligibleRowsAreLeftOutAndTheGradientStays) {
  Case c(testing::AfterstatesDtEnv(), 64);
  for (std::size_t cell = 0; cell < c.grad_logits.size(); ++cell) {
    if (cell % 9 != 0) c.grad_logits[cell] *= 1e-6F;
  }
  const Reference reference = Differentiate(c, *Make(c, 1));
  const auto network = Differentiated(c, 1);
  for (const ParameterInfo& info : network->layout()) {
    EXPECT_LT(WorstShare(network->gradients().data() + info.offset, reference.grad.at(info.name)),
              1e-4)
        << info.name;
  }
}

// Slopes as the loss of a policy that has learnt has them: advantage times (probability - 1 for the
// action taken). Of the legal actions the first is taken, the last is as probable, all others have
// next to no probability. They add up to 0 in each state; advantages differ ten times in a chunk.
void SetSlopesOfALoss(Case& c) {
  constexpr double kOthers = 4e-5;
  for (int s = 0; s < c.n; ++s) {
    const std::uint64_t legal = c.mask[static_cast<std::size_t>(s)];
    const int first = std::countr_zero(legal), last = 63 - std::countl_zero(legal);
    const double advantage = s % 3 == 0 ? -0.1 : 1.0;
    const double likely = (1 - (std::popcount(legal) - 2) * kOthers) / 2;
    for (int action = 0; action < kActions; ++action) {
      const double probability = action == first || action == last ? likely : kOthers;
      c.grad_logits[At(s, action)] =
          static_cast<float>(advantage * (probability - (action == first ? 1 : 0)));
    }
  }
}

// One number that is added to every score changes no policy, so it has no gradient; it has one
// where small slopes of a state are forgotten, and what all placements share has it, too.
TEST(ScorerSparseGradientTest, SlopesOfAStateStillAddUpToZero) {
  for (const EnvSpec& env : {testing::AfterstatesDtEnv(), testing::BoardsEnv()}) {
    Case c(env, 64);
    SetSlopesOfALoss(c);
    double slopes = 0;
    for (const float slope : c.grad_logits) slopes += std::abs(slope);
    const Reference reference = Differentiate(c, *Make(c, 1));
    const auto network = Differentiated(c, 1);
    for (const ParameterInfo& info : network->layout()) {
      const float* gradient = network->gradients().data() + info.offset;
      if (info.name == "score.3.bias" || info.name == "score.head.bias") {
        EXPECT_LT(std::abs(*gradient), 1e-6 * slopes) << info.name;
      } else {
        EXPECT_LT(WorstShare(gradient, reference.grad.at(info.name)), 2e-3) << info.name;
      }
    }
  }
}

TEST(ScorerSparseGradientTest, WhatIsNotANumberIsKept) {
  Case c(testing::AfterstatesEnv(), 2);
  c.mask = {3, 3};
  std::fill(c.grad_logits.begin(), c.grad_logits.end(), 0.0F);
  c.grad_logits[0] = 1.0F;
  c.grad_logits[kActions] = std::nanf("");
  const auto network = Differentiated(c, 1);
  const auto gradients = network->gradients();
  EXPECT_TRUE(
      std::any_of(gradients.begin(), gradients.end(), [](float g) { return std::isnan(g); }));
}

// Around the 16 states of a chunk, a training batch, and other widths.
INSTANTIATE_TEST_SUITE_P(
    States, ScorerGradientTest,
    ::testing::Values(Batch{testing::AfterstatesEnv(), 1}, Batch{testing::AfterstatesDtEnv(), 5},
                      Batch{testing::AfterstatesEnv(), 16}, Batch{testing::AfterstatesDtEnv(), 17},
                      Batch{testing::AfterstatesEnv(), 83},
                      Batch{testing::AfterstatesDtEnv(), 2048}, Batch{testing::BoardsEnv(), 1},
                      Batch{testing::BoardsEnv(), 17}, Batch{testing::BoardsEnv(), 259, 32},
                      Batch{testing::AfterstatesDtEnv(), 33, 16},
                      Batch{testing::AfterstatesDtEnv(), 34, 32},
                      Batch{testing::AfterstatesEnv(), 35, 80},
                      Batch{testing::AfterstatesDtEnv(), 83, 64, Precision::kBf16},
                      Batch{testing::AfterstatesEnv(), 17, 80, Precision::kBf16},
                      Batch{testing::BoardsEnv(), 17, 64, Precision::kBf16}),
    [](const auto& batch) {
      const int floats = batch.param.env.obs.action_floats;
      return (floats == 24   ? "dt_"
              : floats == 12 ? "boards_"
                             : "plain_") +
             std::to_string(batch.param.states) +
             (batch.param.precision == Precision::kBf16 ? "_bf16" : "");
    });

}  // namespace
}  // namespace tetrion
