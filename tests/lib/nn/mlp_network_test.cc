#include "lib/nn/mlp_network.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lib/nn/categorical.h"
#include "lib/nn/mlp.h"
#include "tests/lib/nn/autograd.h"
#include "tests/lib/nn/test_envs.h"

// Both shapes and their gradients are written by hand. Here they are tensor operations in double,
// and every element is compared with automatic differentiation.

namespace tetrion {
namespace {

using testing::Double, testing::Weights, testing::WeightsOf, testing::WorstShare;
using torch::Tensor;

constexpr std::uint64_t kSeed = 21;

struct Batch {
  std::string label;
  EnvSpec env;
  int states;
};

// Inputs of a batch and the loss's slopes. With masks, state 2 of every 5 has no legal action.
struct Case {
  explicit Case(const Batch& batch)
      : env(batch.env),
        n(batch.states),
        actions(env.action.count),
        view(testing::RandomViews(env, n, kSeed)),
        grad_logits(testing::Noise(Size(actions), kSeed + 1)),
        grad_value(testing::Noise(Size(1), kSeed + 2)) {
    for (int i = 0; env.action.has_mask && i < n; ++i) {
      const PhiloxBlock draw =
          PhiloxDraw(kSeed, static_cast<std::uint64_t>(i), 3, PhiloxPurpose::kSampler);
      mask.push_back(i % 5 == 2 ? 0 : std::uint64_t{draw.word[0]} << 20 | draw.word[1] >> 12);
    }
  }
  std::size_t Size(std::int64_t of_one) const { return static_cast<std::size_t>(n * of_one); }
  const std::uint64_t* masks() const { return mask.empty() ? nullptr : mask.data(); }
  bool IsLegal(std::size_t cell) const {
    const auto wide = static_cast<std::size_t>(actions);
    return mask.empty() || (mask[cell / wide] >> (cell % wide) & 1) != 0;
  }

  const EnvSpec env;
  const int n, actions;
  std::vector<float> view, grad_logits, grad_value;
  std::vector<std::uint64_t> mask;
};

std::unique_ptr<Network> Make(const Case& c, int threads) {
  auto network =
      MakeMlp({.seed = 3, .max_states = c.n, .training = true, .threads = threads}, c.env);
  const std::vector<float> noise = testing::Noise(network->parameters().size(), 77);
  for (std::size_t i = 0; i < noise.size(); ++i) network->parameters()[i] += 0.1F * noise[i];
  return network;
}

Tensor Linear(const Weights& w, const std::string& name, const Tensor& x) {
  return torch::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
}

Tensor SmallTrunk(const Weights& w, const std::string& name, const Tensor& x) {
  const Tensor h = torch::tanh(Linear(w, name + ".1", x));
  return Linear(w, name + ".head", torch::tanh(Linear(w, name + ".2", h)));
}

Tensor WideLayer(const Weights& w, const std::string& name, const Tensor& x) {
  return torch::silu(torch::layer_norm(Linear(w, name, x), {kWideMlpUnits},
                                       w.at(name + ".norm.scale"), w.at(name + ".norm.bias"),
                                       kLayerNormEpsilon));
}

struct Reference {
  Tensor logits, value;                // [n, A], [n] f64
  std::map<std::string, Tensor> grad;  // by parameter name
};

Reference Differentiate(const Case& c, const Network& network) {
  const Weights w = WeightsOf(network);
  const Tensor view = Double(c.view, {c.n, c.env.obs.view_floats});
  Reference reference;
  if (MlpShapeOf(c.env.obs) == MlpShape::kSmall) {
    reference.logits = SmallTrunk(w, "policy", view);
    reference.value = SmallTrunk(w, "value", view).squeeze(1);
  } else {
    const Tensor h = WideLayer(w, "trunk.2", WideLayer(w, "trunk.1", view));
    reference.logits = Linear(w, "policy.head", h);
    reference.value = Linear(w, "value.head", h).squeeze(1);
  }
  std::vector<float> slopes = c.grad_logits;  // a masked logit has none
  for (std::size_t cell = 0; cell < slopes.size(); ++cell) {
    if (!c.IsLegal(cell)) slopes[cell] = 0;
  }
  const Tensor loss = (reference.logits * Double(slopes, {c.n, c.actions})).sum() +
                      (reference.value * Double(c.grad_value, {c.n})).sum();
  loss.backward();
  for (const auto& [name, tensor] : w) reference.grad[name] = tensor.grad();
  return reference;
}

class MlpNetworkTest : public ::testing::TestWithParam<Batch> {};

// A lost row of 64 would be 1e-2 of a gradient's largest element, f32 is 1e-5 of it.
TEST_P(MlpNetworkTest, EveryElementEqualsAutomaticDifferentiationInDouble) {
  const Case c(GetParam());
  const Reference reference = Differentiate(c, *Make(c, 1));
  const Tensor logits_of = reference.logits.detach().contiguous();
  for (const int threads : {1, 3}) {
    const auto network = Make(c, threads);
    std::vector<float> logits(c.Size(c.actions)), value(c.Size(1));
    network->Forward(c.view.data(), c.masks(), c.n, logits.data(), value.data());
    for (std::size_t cell = 0; cell < logits.size(); ++cell) {
      const double expected = logits_of.const_data_ptr<double>()[cell];
      ASSERT_NEAR(logits[cell], c.IsLegal(cell) ? expected : kMaskedLogit, 2e-5) << cell;
    }
    EXPECT_LT(WorstShare(value.data(), reference.value), 2e-5);
    network->Backward(c.grad_logits.data(), c.grad_value.data());
    for (const ParameterInfo& info : network->layout()) {
      EXPECT_LT(WorstShare(network->gradients().data() + info.offset, reference.grad.at(info.name)),
                1e-4)
          << info.name << " with " << threads << " threads";
    }
  }
}

TEST_P(MlpNetworkTest, GradientDoesNotDependOnThreadsBitForBit) {
  const Case c(GetParam());
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const auto network = Make(c, threads);
    std::vector<float> logits(c.Size(c.actions)), value(c.Size(1));
    network->Forward(c.view.data(), c.masks(), c.n, logits.data(), value.data());
    network->Backward(c.grad_logits.data(), c.grad_value.data());
    const std::vector<float> gradient(network->gradients().begin(), network->gradients().end());
    if (first.empty()) first = gradient;
    ASSERT_EQ(gradient, first) << threads << " threads";
  }
}

// Around the 64 states of a chunk, and a training batch.
INSTANTIATE_TEST_SUITE_P(Shapes, MlpNetworkTest,
                         ::testing::Values(Batch{"small_1", testing::VectorEnv(), 1},
                                           Batch{"small_64", testing::VectorEnv(), 64},
                                           Batch{"small_2051", testing::VectorEnv(), 2051},
                                           Batch{"wide_1", testing::PlanesEnv(), 1},
                                           Batch{"wide_65", testing::PlanesEnv(), 65},
                                           Batch{"wide_odd_66", testing::OddPlanesEnv(), 66},
                                           Batch{"wide_masked_640", testing::MaskedPlanesEnv(),
                                                 640}),
                         [](const auto& batch) { return batch.param.label; });

}  // namespace
}  // namespace tetrion
