#include "lib/nn/dreamer/dreamer_decoder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/lib/nn/dreamer/golden_tensors.h"

namespace tetrion {
namespace {

using testing::ExpectGolden;
using testing::GoldenLeaf;
using testing::GoldenTensor;
using torch::Tensor;

TEST(DreamerDecoder, DrawsPicturesAsTheFormula) {
  if (!testing::HasGolden("picture.feature")) GTEST_SKIP() << testing::kNoCase;
  const DreamerShape shape = testing::PictureShape();
  testing::GoldenParameters parameters(shape, "picture.p.");
  const DreamerTensors tensors(parameters.layout, 0, parameters.values, {});
  const DreamerDecoder decoder(shape, tensors);
  const Tensor feature = GoldenLeaf("picture.feature");
  const Tensor decoded = decoder(feature);
  ExpectGolden(decoded, "picture.decoded", 1e-4);
  const Tensor loss = torch::square(decoded - GoldenTensor("picture.view")).sum();
  ExpectGolden(loss, "picture.loss", 1e-4);
  loss.backward();
  ExpectGolden(feature.grad(), "picture.feature_slope", 1e-4);
}

TEST(UpsampleTwice, RepeatsEveryCellFourTimes) {
  const Tensor x = torch::tensor({1.0F, 2.0F}).reshape({1, 1, 2, 1});
  EXPECT_TRUE(UpsampleTwice(x).flatten().equal(
      torch::tensor({1.0F, 1.0F, 2.0F, 2.0F, 1.0F, 1.0F, 2.0F, 2.0F})));
}

}  // namespace
}  // namespace tetrion
