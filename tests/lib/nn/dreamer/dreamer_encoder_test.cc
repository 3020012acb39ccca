#include "lib/nn/dreamer/dreamer_encoder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/lib/nn/dreamer/golden_tensors.h"

namespace tetrion {
namespace {

using testing::ExpectGolden;
using testing::GoldenLeaf;
using testing::GoldenTensor;
using torch::Tensor;

TEST(DreamerEncoder, SeesPicturesAsTheFormula) {
  if (!testing::HasGolden("picture.view")) GTEST_SKIP() << testing::kNoCase;
  const DreamerShape shape = testing::PictureShape();
  testing::GoldenParameters parameters(shape, "picture.p.");
  const DreamerTensors tensors(parameters.layout, 0, parameters.values, {});
  const DreamerEncoder encoder(shape, tensors);
  const Tensor view = GoldenLeaf("picture.view");
  const Tensor embed = encoder(view);
  ExpectGolden(embed, "picture.embed", 1e-4);
  (embed * GoldenTensor("picture.weight")).sum().backward();
  ExpectGolden(view.grad().index_select(1, GoldenTensor("picture.pixel").to(torch::kInt64)),
               "picture.pixel_slope", 1e-4);
  ExpectGolden((view.grad() * GoldenTensor("picture.along")).sum(), "picture.along_slope", 1e-4);
}

TEST(PoolTwoByTwo, AnOddLastRowIsPooledAlone) {
  const Tensor x = torch::arange(6, torch::kFloat32).reshape({1, 3, 2, 1}) - 10;
  EXPECT_TRUE(PoolTwoByTwo(x).flatten().equal(torch::tensor({-7.0F, -5.0F})));
}

TEST(PoolTwoByTwo, EqualCellsShareTheSlope) {
  const Tensor x = torch::tensor({1.0F, 3.0F, 3.0F, 2.0F}).reshape({1, 2, 2, 1}).requires_grad_();
  PoolTwoByTwo(x).sum().backward();
  EXPECT_TRUE(x.grad().flatten().equal(torch::tensor({0.0F, 0.5F, 0.5F, 0.0F})));
}

}  // namespace
}  // namespace tetrion
