#include "lib/nn/dreamer/dreamer_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/nn/dreamer/dreamer_model.h"

namespace tetrion {
namespace {

using torch::Tensor;

DreamerShape NanoShape() {
  DreamerShape shape;
  shape.size = DreamerSizeOf("nano");
  shape.floats = 4;
  shape.actions = 2;
  return shape;
}

TEST(DreamerTensors, AreViewsOfTheCallersBuffers) {
  ParameterLayout layout;
  AddLinear(layout, "a", 2, 3);
  std::vector<float> values(8), gradients(8);
  const Tensor weight = DreamerTensors(layout, 0, values, gradients).Find("a.weight");
  values[4] = 7;
  EXPECT_EQ(weight[1][1].item<float>(), 7);
  (weight * 2).sum().backward();
  (weight * 3).sum().backward();
  EXPECT_EQ(gradients, (std::vector<float>{5, 5, 5, 5, 5, 5, 0, 0}));
}

TEST(DreamerTensors, LeaveOutWhatTheBufferDoesNotHold) {
  ParameterLayout layout;
  AddLinear(layout, "a", 2, 3);
  AddLinear(layout, "b", 1, 2);
  std::vector<float> last = {1, 2, 3};
  const DreamerTensors tensors(layout, 8, last, {});
  EXPECT_FALSE(tensors.Find("a.weight").defined());
  EXPECT_TRUE(tensors.Find("b.weight").equal(torch::tensor({{1.0F, 2.0F}})));
  EXPECT_TRUE(tensors.Find("b.bias").equal(torch::tensor({3.0F})));
}

TEST(DreamerHead, ACriticOfItsOwnBufferIsTheModelsCritic) {
  const DreamerShape shape = NanoShape();
  const ParameterLayout layout = DreamerLayout(shape);
  std::vector<float> values(FloatsOf(layout));
  FillDreamerInitial(shape, 3, values);
  for (float& value : values) value += 0.01F;  // the last layer is zero at first
  const DreamerModel model(shape, values, {});
  const DreamerSlice slice = DreamerModule(layout, "value");
  std::vector<float> copy(slice.size);
  std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(slice.offset), slice.size, copy.begin());
  const torch::NoGradGuard guard;
  const Tensor feature = torch::randn({5, shape.feature_floats()});
  EXPECT_TRUE(MakeDreamerCritic(shape, copy)(feature).equal(model.ValueLogits(feature)));
}

}  // namespace
}  // namespace tetrion
