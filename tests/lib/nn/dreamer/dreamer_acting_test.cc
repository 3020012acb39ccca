#include "lib/nn/dreamer/dreamer_acting.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <new>
#include <vector>

#include "lib/nn/dreamer/dreamer_model.h"
#include "tests/lib/nn/test_envs.h"

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
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::getpagesize()) + (rlim_t{16} << 20);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(100);
    try {
      acting.ActorLogits(kMany, deter.data(), stoch.data(), logits.data());
      ::_exit(101);
    } catch (const std::bad_alloc&) {
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(102);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tetrion
