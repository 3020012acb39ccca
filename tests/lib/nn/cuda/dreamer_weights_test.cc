#include "lib/nn/cuda/dreamer_weights.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

// Of nano on a view of 4 numbers with 2 actions, as CartPole's; StepDreamer in docs/kernels.md.
TEST(DreamerWeightsTest, AStepReadsAndKeepsWhatTheTableOfKernelsSays) {
  const DreamerShape shape = DreamerShapeOf(testing::VectorEnv(), "nano");
  // Rows of weights whose input is 0: the sampled state's, in core and actor, and the action's.
  const std::int64_t unread_rows =
      2 * (shape.stoch_floats() - shape.size.stoch) + shape.actions - 1;
  EXPECT_EQ(ActingFloats(shape) - static_cast<std::size_t>(unread_rows * shape.size.units),
            164930U);  // 660 kB
  DreamerActingWeights weights;
  weights.floats = static_cast<unsigned>(shape.floats);
  weights.units = static_cast<unsigned>(shape.size.units);
  weights.deter = static_cast<unsigned>(shape.size.deter);
  weights.stoch = static_cast<unsigned>(shape.size.stoch);
  weights.classes = static_cast<unsigned>(shape.size.classes);
  EXPECT_EQ(DreamerScratch(weights).floats, 1540U);
}

}  // namespace
}  // namespace tetrion
