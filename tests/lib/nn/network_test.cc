#include "lib/nn/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/core/error.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

struct Case {
  std::string label, network;
  EnvSpec env;
};

std::vector<Case> Cases() {
  return {{"scorer", "scorer", testing::AfterstatesEnv()},
          {"columns", "columns", testing::BoardsEnv()},
          {"mlp_vector", "mlp", testing::VectorEnv()},
          {"mlp_planes", "mlp", testing::PlanesEnv()},
          {"mlp_masked", "mlp", testing::MaskedPlanesEnv()},
          {"conv", "conv", testing::PlanesEnv()}};
}

// A call's inputs and outputs for n states.
struct Call {
  Call(const EnvSpec& env, int n, std::uint64_t seed)
      : view(testing::RandomViews(env, n, seed)),
        logits(static_cast<std::size_t>(n * env.action.count)),
        value(static_cast<std::size_t>(n)) {
    if (!env.action.has_mask) return;
    for (int i = 0; i < n; ++i) {
      const PhiloxBlock draw =
          PhiloxDraw(seed, static_cast<std::uint64_t>(i), 1, PhiloxPurpose::kSampler);
      mask.push_back((std::uint64_t{draw.word[0]} << 20 | draw.word[1] | 1) &
                     ((std::uint64_t{1} << 40) - 1));
    }
  }
  const std::uint64_t* masks() const { return mask.empty() ? nullptr : mask.data(); }

  std::vector<float> view;
  std::vector<std::uint64_t> mask;
  std::vector<float> logits, value;
};

// Scales every parameter away from the tiny initial policy head, so that logits depend on the
// input.
void Randomise(Network& network) {
  const std::vector<float> noise = testing::Noise(network.parameters().size(), 77);
  for (std::size_t i = 0; i < noise.size(); ++i) network.parameters()[i] += 0.1F * noise[i];
}

class NetworkTest : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Network> Make(int max_states, bool training, int threads = 1) const {
    auto network = MakeNetwork({.name = GetParam().network,
                                .seed = 3,
                                .max_states = max_states,
                                .training = training,
                                .threads = threads},
                               GetParam().env);
    Randomise(*network);
    return network;
  }
};

TEST_P(NetworkTest, LayoutCoversTheFlatBufferWithoutGapsAndNamesAreUnique) {
  const auto network = Make(1, true);
  std::size_t offset = 0;
  std::set<std::string> names;
  for (const ParameterInfo& info : network->layout()) {
    EXPECT_EQ(info.offset, offset);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    offset += info.size;
  }
  EXPECT_EQ(network->parameters().size(), offset);
  EXPECT_EQ(network->gradients().size(), offset);
}

TEST_P(NetworkTest, EveryPieceOfTheFlatBufferActsOnTheOutputs) {
  const auto network = Make(4, false);
  Call before(GetParam().env, 4, 5);
  network->Infer(before.view.data(), before.masks(), 4, before.logits.data(), before.value.data());
  for (const ParameterInfo& info : network->layout()) {
    const auto piece = network->parameters().subspan(info.offset, info.size);
    const std::vector<float> kept(piece.begin(), piece.end());
    for (float& value : piece) value += 0.5F;
    Call after(GetParam().env, 4, 5);
    network->Infer(after.view.data(), after.masks(), 4, after.logits.data(), after.value.data());
    EXPECT_TRUE(before.logits != after.logits || before.value != after.value) << info.name;
    std::copy(kept.begin(), kept.end(), piece.begin());
  }
}

TEST_P(NetworkTest, InferenceAndForwardAgreeAndLanesDoNotInfluenceEachOther) {
  constexpr int kStates = 70;  // more than a chunk of every network, and not a multiple
  const EnvSpec& env = GetParam().env;
  const auto network = Make(kStates, true);
  Call infer(env, kStates, 6), forward(env, kStates, 6);
  network->Infer(infer.view.data(), infer.masks(), kStates, infer.logits.data(),
                 infer.value.data());
  network->Forward(forward.view.data(), forward.masks(), kStates, forward.logits.data(),
                   forward.value.data());
  EXPECT_EQ(infer.value, forward.value);
  for (int i = 0; i < kStates; ++i) {
    std::vector<float> logits(static_cast<std::size_t>(env.action.count));
    float value = 0;
    network->Infer(infer.view.data() + i * env.obs.view_floats,
                   infer.masks() == nullptr ? nullptr : infer.masks() + i, 1, logits.data(),
                   &value);
    EXPECT_NEAR(value, infer.value[static_cast<std::size_t>(i)], 1e-4);
    for (int a = 0; a < env.action.count; ++a) {
      const auto at = static_cast<std::size_t>(i * env.action.count + a);
      EXPECT_NEAR(logits[static_cast<std::size_t>(a)], infer.logits[at], 1e-4);
      EXPECT_EQ(infer.logits[at], forward.logits[at]);
      const bool legal =
          infer.mask.empty() || (infer.mask[static_cast<std::size_t>(i)] >> a & 1) != 0;
      EXPECT_EQ(infer.logits[at] == kMaskedLogit, !legal);
    }
  }
}

// sum over outputs of weight * output, for which Backward's gradient must equal difference
// quotients.
double WeightedSum(const Call& call, const std::vector<float>& grad_logits,
                   const std::vector<float>& grad_value) {
  double sum = 0;
  for (std::size_t i = 0; i < call.logits.size(); ++i) {
    if (call.logits[i] != kMaskedLogit) sum += static_cast<double>(call.logits[i]) * grad_logits[i];
  }
  for (std::size_t i = 0; i < call.value.size(); ++i) {
    sum += static_cast<double>(call.value[i]) * grad_value[i];
  }
  return sum;
}

TEST_P(NetworkTest, BackwardMatchesDifferenceQuotientsInEveryPiece) {
  constexpr int kStates = 19;  // more than a chunk of 16, and not a multiple
  const auto network = Make(kStates, true);
  Call call(GetParam().env, kStates, 8);
  const std::vector<float> grad_logits = testing::Noise(call.logits.size(), 9);
  const std::vector<float> grad_value = testing::Noise(call.value.size(), 10);
  network->Forward(call.view.data(), call.masks(), kStates, call.logits.data(), call.value.data());
  network->Backward(grad_logits.data(), grad_value.data());
  for (const ParameterInfo& info : network->layout()) {
    // Along one random direction of the piece: a single number per piece has little rounding noise.
    const std::vector<float> direction = testing::Noise(info.size, info.offset + 11);
    const auto piece = network->parameters().subspan(info.offset, info.size);
    const std::vector<float> kept(piece.begin(), piece.end());
    double expected = 0, squares = 0;
    for (std::size_t i = 0; i < info.size; ++i) {
      expected += static_cast<double>(network->gradients()[info.offset + i]) * direction[i];
      squares += static_cast<double>(direction[i]) * direction[i];
    }
    const double step = 2e-2 / std::sqrt(squares);
    double sum[2];
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < info.size; ++i) {
        piece[i] = kept[i] + static_cast<float>((side == 0 ? -step : step) * direction[i]);
      }
      Call moved(GetParam().env, kStates, 8);
      network->Infer(moved.view.data(), moved.masks(), kStates, moved.logits.data(),
                     moved.value.data());
      sum[side] = WeightedSum(moved, grad_logits, grad_value);
    }
    std::copy(kept.begin(), kept.end(), piece.begin());
    const double quotient = (sum[1] - sum[0]) / (2 * step);
    EXPECT_NEAR(quotient, expected, 0.02 * std::abs(expected) + 0.02 * std::sqrt(squares) / 10)
        << info.name;
  }
}

TEST_P(NetworkTest, BackwardAddsToTheGradientAndTwoThreadsGiveTheSame) {
  constexpr int kStates = 150;  // chunks for both threads, of every network
  const auto one = Make(kStates, true, 1), two = Make(kStates, true, 2);
  Call call(GetParam().env, kStates, 12);
  const std::vector<float> grad_logits = testing::Noise(call.logits.size(), 13);
  const std::vector<float> grad_value = testing::Noise(call.value.size(), 14);
  for (int pass = 0; pass < 2; ++pass) {
    one->Forward(call.view.data(), call.masks(), kStates, call.logits.data(), call.value.data());
    one->Backward(grad_logits.data(), grad_value.data());
  }
  const std::vector<float> one_logits = call.logits;
  two->Forward(call.view.data(), call.masks(), kStates, call.logits.data(), call.value.data());
  two->Backward(grad_logits.data(), grad_value.data());
  double largest = 0;
  for (float g : two->gradients()) largest = std::max(largest, std::abs(static_cast<double>(g)));
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < two->gradients().size(); ++i) {
    ASSERT_NEAR(one->gradients()[i], 2 * two->gradients()[i], 2e-4 * largest);
  }
  for (std::size_t i = 0; i < one_logits.size(); ++i)
    ASSERT_NEAR(one_logits[i], call.logits[i], 1e-4);
}

// As in the second of two updates of one batch: parameters have changed, states have not.
TEST_P(NetworkTest, ForwardAgainIsAForwardOfTheSameStates) {
  constexpr int kStates = 70;
  const auto plain = Make(kStates, true), again = Make(kStates, true);
  Call a(GetParam().env, kStates, 15), b(GetParam().env, kStates, 15);
  Call other(GetParam().env, kStates, 16);
  const std::vector<float> grad_logits = testing::Noise(a.logits.size(), 17);
  const std::vector<float> grad_value = testing::Noise(a.value.size(), 18);
  again->Forward(b.view.data(), b.masks(), kStates, b.logits.data(), b.value.data());
  again->Backward(grad_logits.data(), grad_value.data());
  std::fill(again->gradients().begin(), again->gradients().end(), 0.0F);
  for (Network* network : {plain.get(), again.get()}) {
    for (float& parameter : network->parameters()) parameter *= 1.125F;
  }
  again->Infer(other.view.data(), other.masks(), kStates, other.logits.data(), other.value.data());
  plain->Forward(a.view.data(), a.masks(), kStates, a.logits.data(), a.value.data());
  plain->Backward(grad_logits.data(), grad_value.data());
  again->ForwardAgain(b.view.data(), b.masks(), kStates, b.logits.data(), b.value.data());
  again->Backward(grad_logits.data(), grad_value.data());
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.value, b.value);
  for (std::size_t i = 0; i < plain->gradients().size(); ++i) {
    ASSERT_EQ(plain->gradients()[i], again->gradients()[i]) << i;
  }
}

// Gradients do not depend on calls of Infer in between, nor on which outputs Forward was asked for.
TEST_P(NetworkTest, WhatForwardKeepsForBackwardStaysWhateverElseIsAsked) {
  constexpr int kStates = 70;  // more than a chunk of every network
  const auto plain = Make(kStates, true), disturbed = Make(kStates, true);
  Call call(GetParam().env, kStates, 15), other(GetParam().env, kStates, 16);
  const std::vector<float> grad_logits = testing::Noise(call.logits.size(), 17);
  const std::vector<float> grad_value = testing::Noise(call.value.size(), 18);
  plain->Forward(call.view.data(), call.masks(), kStates, call.logits.data(), call.value.data());
  plain->Backward(grad_logits.data(), grad_value.data());
  disturbed->Forward(call.view.data(), call.masks(), kStates, nullptr, nullptr);
  disturbed->Infer(other.view.data(), other.masks(), kStates, other.logits.data(),
                   other.value.data());
  disturbed->Backward(grad_logits.data(), grad_value.data());
  for (std::size_t i = 0; i < plain->gradients().size(); ++i) {
    ASSERT_EQ(plain->gradients()[i], disturbed->gradients()[i]) << i;
  }
}

TEST_P(NetworkTest, SameSeedSameWeightsOtherSeedOtherWeights) {
  const auto make = [&](std::uint64_t seed) {
    const auto network = MakeNetwork({.name = GetParam().network, .seed = seed}, GetParam().env);
    return std::vector<float>(network->parameters().begin(), network->parameters().end());
  };
  EXPECT_EQ(make(1), make(1));
  EXPECT_NE(make(1), make(2));
}

// Of the first vector that was drawn for a matrix the first two numbers keep their ratio, whatever
// its length and gain: from the same draws policy and value would begin as one.
TEST_P(NetworkTest, EveryMatrixBeginsFromDrawsOfItsOwn) {
  const auto network = MakeNetwork({.name = GetParam().network, .seed = 5}, GetParam().env);
  std::set<float> ratios;
  std::size_t matrices = 0;
  for (const ParameterInfo& info : network->layout()) {
    if (info.shape.size() < 2) continue;
    const float* weight = network->parameters().data() + info.offset;
    const auto rows = static_cast<std::size_t>(info.shape[0]);
    const std::size_t columns = info.size / rows;
    ratios.insert(std::round(1e3F * weight[0] / weight[rows > columns ? columns : 1]));
    ++matrices;
  }
  EXPECT_GT(matrices, 1U);
  EXPECT_EQ(ratios.size(), matrices);
}

TEST_P(NetworkTest, BlankNetworkComputesWhatTheLoadedWeightsDo) {
  const EnvSpec& env = GetParam().env;
  const auto network = Make(8, false);
  const auto blank = MakeNetwork({.name = GetParam().network, .blank = true, .max_states = 8}, env);
  EXPECT_THAT(blank->parameters(), ::testing::Each(0.0F));
  std::copy_n(network->parameters().begin(), network->parameters().size(),
              blank->parameters().begin());
  Call a(env, 8, 15), b(env, 8, 15);
  network->Infer(a.view.data(), a.masks(), 8, a.logits.data(), a.value.data());
  blank->Infer(b.view.data(), b.masks(), 8, b.logits.data(), b.value.data());
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.value, b.value);
}

TEST_P(NetworkTest, FreshPolicyIsNearlyUniformOverLegalActions) {
  const auto network = MakeNetwork({.name = GetParam().network, .max_states = 8}, GetParam().env);
  Call call(GetParam().env, 8, 15);
  network->Infer(call.view.data(), call.masks(), 8, call.logits.data(), call.value.data());
  for (float logit : call.logits) {
    if (logit == kMaskedLogit) continue;
    EXPECT_LT(std::abs(logit), 0.2F);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NetworkTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.label; });

TEST(NetworkChoiceTest, AutoFollowsTheView) {
  EXPECT_EQ(ResolveNetworkName("auto", testing::AfterstatesEnv()), "scorer");
  EXPECT_EQ(ResolveNetworkName("auto", testing::BoardsEnv()), "columns");
  EXPECT_EQ(ResolveNetworkName("auto", testing::PlanesEnv()), "mlp");
  EXPECT_EQ(ResolveNetworkName("auto", testing::VectorEnv()), "mlp");
  EXPECT_EQ(ResolveNetworkName("conv", testing::PlanesEnv()), "conv");
}

TEST(NetworkChoiceTest, UnfitNetworksAreRefusedWithTheAlternative) {
  EXPECT_THROW(MakeNetwork({.name = "scorer"}, testing::PlanesEnv()), Error);
  EXPECT_THROW(MakeNetwork({.name = "columns"}, testing::AfterstatesEnv()), Error);
  EXPECT_THROW(MakeNetwork({.name = "scorer"}, testing::BoardsEnv()), Error);
  EXPECT_THROW(MakeNetwork({.name = "conv"}, testing::VectorEnv()), Error);
  try {
    MakeNetwork({.name = "transformer"}, testing::VectorEnv());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("scorer, columns, mlp or conv"), std::string::npos);
  }
}

TEST(ScorerTest, EqualAfterstatesOfOneStateGetEqualLogitsAndOtherStatesDoNot) {
  const EnvSpec env = testing::AfterstatesEnv();
  const auto network = MakeNetwork({.max_states = 2}, env);
  Randomise(*network);
  Call call(env, 2, 16);
  call.mask = {~std::uint64_t{0} >> 24, ~std::uint64_t{0} >> 24};
  std::copy_n(call.view.begin() + 3 * 16, 16, call.view.begin() + 31 * 16);
  std::copy_n(call.view.begin() + 3 * 16, 16, call.view.begin() + env.obs.view_floats + 5 * 16);
  network->Infer(call.view.data(), call.mask.data(), 2, call.logits.data(), call.value.data());
  EXPECT_EQ(call.logits[3], call.logits[31]);
  EXPECT_NE(call.logits[3], call.logits[40 + 5]);
  EXPECT_NE(call.logits[3], call.logits[4]);
}

TEST(ScorerTest, StatesWithoutALegalPlacementAreFiniteAndHarmless) {
  const EnvSpec env = testing::AfterstatesEnv();
  const auto network = MakeNetwork({.max_states = 1, .training = true}, env);
  Call call(env, 1, 17);
  call.mask = {0};
  network->Forward(call.view.data(), call.mask.data(), 1, call.logits.data(), call.value.data());
  for (float logit : call.logits) EXPECT_EQ(logit, kMaskedLogit);
  EXPECT_TRUE(std::isfinite(call.value[0]));
  const std::vector<float> ones(40, 1.0F);
  network->Backward(ones.data(), ones.data());
  for (float g : network->gradients()) ASSERT_TRUE(std::isfinite(g));
}

}  // namespace
}  // namespace tetrion
