#include "lib/nn/dreamer/dreamer_acting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "lib/nn/dreamer/dreamer_model.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/support/little_memory.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kLanes = 515;  // more than are seen at a time

Tensor Copy(const std::vector<float>& values, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values.data()), shape).clone();
}

TEST(DreamerActingTest, OneStepIsThatOfTheWholeModel) {
  const DreamerShape shape = DreamerShapeOf(testing::VectorEnv(), "nano");
  const DreamerSize& size = shape.size;
  std::vector<float> all(FloatsOf(DreamerLayout(shape)));
  FillDreamerInitial(shape, 7, all);
  const DreamerModel model(shape, all, {});
  DreamerActing acting(shape);
  std::copy_n(all.begin(), acting.parameters().size(), acting.parameters().begin());

  const auto floats = [](std::int64_t width) { return static_cast<std::size_t>(kLanes * width); };
  const std::vector<float> deter = testing::Noise(floats(size.deter), 1);
  const std::vector<float> stoch = testing::Noise(floats(shape.stoch_floats()), 2);
  const std::vector<float> action = testing::Noise(floats(shape.actions), 3);
  const std::vector<float> view = testing::Noise(floats(shape.floats), 4);
  std::vector<float> next(deter.size()), log_probs(stoch.size()), logits(action.size());
  acting.Observe(
      kLanes,
      {.deter = deter.data(), .stoch = stoch.data(), .action = action.data(), .view = view.data()},
      next.data(), log_probs.data());
  acting.ActorLogits(kLanes, next.data(), stoch.data(), logits.data());

  const std::vector<std::int64_t> groups = {kLanes, size.stoch, size.classes};
  const torch::NoGradGuard no_gradients;
  const Tensor expected_next =
      model.Core(Copy(deter, {kLanes, size.deter}), Copy(stoch, groups), Copy(action, {kLanes, 2}));
  const Tensor embed = model.Encode(Copy(view, {kLanes, shape.floats}));
  EXPECT_TRUE(torch::allclose(Copy(next, {kLanes, size.deter}), expected_next, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(Copy(log_probs, groups),
                              model.PosteriorLogProbs(expected_next, embed), 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(Copy(logits, {kLanes, 2}),
                              model.ActorLogits(model.Feature(expected_next, Copy(stoch, groups))),
                              1e-5, 1e-6));
}

// As everything else of ours, and unlike the tensor library.
TEST(DreamerActingTest, LogitsForWantOfMemoryAreBadAlloc) {
  constexpr int kMany = 1 << 16;
  const DreamerShape shape = DreamerShapeOf(testing::VectorEnv(), "nano");
  const DreamerActing acting(shape);
  const auto zeros = [](std::int64_t width) {
    return std::vector<float>(static_cast<std::size_t>(kMany * width));
  };
  const std::vector<float> deter = zeros(shape.size.deter), stoch = zeros(shape.stoch_floats());
  std::vector<float> logits = zeros(shape.actions);
  const int status = testing::ExitWithRoom(std::uint64_t{16} << 20, [&] {
    try {
      acting.ActorLogits(kMany, deter.data(), stoch.data(), logits.data());
      return 1;
    } catch (const std::bad_alloc&) {
      return 0;
    }
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tetrion
