#include "lib/nn/dreamer/layer_nodes.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {
namespace {

using torch::Tensor;

// Leaves with the same values.
std::vector<Tensor> Twins(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> twins;
  for (const Tensor& leaf : leaves) {
    twins.push_back(leaf.detach().clone().to(torch::kFloat64).requires_grad_(leaf.requires_grad()));
  }
  return twins;
}

Tensor Leaf(at::IntArrayRef shape) {
  return torch::randn(shape).requires_grad_(true);
}

void ExpectNear(const Tensor& actual, const Tensor& expected, const char* what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LE((actual - expected).abs().max().item<double>(), 2e-5 * scale) << what;
}

// Value and slopes of `ours` against those of `formula`, which takes the same leaves in double.
template <typename Ours, typename Formula>
void ExpectSame(const std::vector<Tensor>& leaves, const Ours& ours, const Formula& formula) {
  const std::vector<Tensor> twins = Twins(leaves);
  const Tensor value = ours(leaves), expected = formula(twins);
  ExpectNear(value.detach(), expected.detach(), "value");
  const Tensor weight = torch::randn(value.sizes());
  (value * weight).sum().backward();
  (expected * weight).sum().backward();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].requires_grad()) ExpectNear(leaves[i].grad(), twins[i].grad(), "slope");
  }
  const torch::NoGradGuard guard;
  ExpectNear(ours(leaves), expected, "value without gradient");
}

// Rows around the number from which the weight is transposed, and around the rows of a block.
TEST(LayerNode, IsTheLinearLayerWithItsSlopes) {
  torch::manual_seed(1);
  for (const std::int64_t rows : {1, 31, 32, 65, 200}) {
    for (const std::int64_t out : {1, 2, 64, 255}) {
      ExpectSame(
          {Leaf({rows, 37}), Leaf({out, 37}), Leaf({out})},
          [](const auto& l) { return LayerNode(l[0], l[1], l[2]); },
          [](const auto& l) { return torch::linear(l[0], l[1], l[2]); });
    }
  }
}

TEST(LayerNode, WithAScaleIsTheHiddenLayerWithItsSlopes) {
  torch::manual_seed(2);
  for (const std::int64_t rows : {1, 31, 32, 200}) {
    for (const std::int64_t out : {8, 64, 200}) {
      ExpectSame(
          {Leaf({rows, 20}), Leaf({out, 20}), Leaf({out}), Leaf({out})},
          [](const auto& l) { return LayerNode(l[0], l[1], l[2], l[3]); },
          [](const auto& l) {
            return torch::silu(RmsNorm(torch::linear(l[0], l[1], l[2]), l[3]));
          });
    }
  }
}

TEST(LayerNode, TakesRowsInAnyDimensionsAndInputsWithoutSlope) {
  torch::manual_seed(3);
  ExpectSame(
      {torch::randn({3, 20, 7}), Leaf({5, 7}), Leaf({5}), Leaf({5})},
      [](const auto& l) { return LayerNode(l[0].transpose(0, 1), l[1], l[2], l[3]); },
      [](const auto& l) {
        return torch::silu(RmsNorm(torch::linear(l[0].transpose(0, 1), l[1], l[2]), l[3]));
      });
}

// Each block by itself.
Tensor Blocks(const Tensor& x, const Tensor& shared, const Tensor& weight, const Tensor& bias) {
  const std::int64_t blocks = weight.size(0), in = x.size(1) / blocks;
  std::vector<Tensor> parts;
  for (std::int64_t g = 0; g < blocks; ++g) {
    const Tensor mine = x.narrow(1, g * in, in);
    parts.push_back(torch::mm(shared.defined() ? torch::cat({mine, shared}, 1) : mine, weight[g]));
  }
  return torch::cat(parts, 1) + bias;
}

TEST(BlockLayerNode, IsALayerABlockWithItsSlopes) {
  torch::manual_seed(4);
  for (const std::int64_t rows : {1, 8, 200}) {
    ExpectSame(
        {Leaf({rows, 4 * 6}), Leaf({rows, 10}), Leaf({4, 6 + 10, 5}), Leaf({4 * 5})},
        [](const auto& l) { return BlockLayerNode(l[0], l[1], l[2], l[3]); },
        [](const auto& l) { return Blocks(l[0], l[1], l[2], l[3]); });
    ExpectSame(
        {Leaf({rows, 8 * 32}), Leaf({8, 32, 96}), Leaf({8 * 96})},
        [](const auto& l) { return BlockLayerNode(l[0], {}, l[1], l[2]); },
        [](const auto& l) { return Blocks(l[0], {}, l[1], l[2]); });
  }
}

}  // namespace
}  // namespace tetrion
