#include "lib/rl/dreamer/dreamer_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using torch::Tensor;

// Two rows of two lanes; lane 1 begins an episode at row 1, and knows no state before row 0.
class DreamerRowsTest : public ::testing::Test {
 protected:
  DreamerRowsTest() : shape_(DreamerShapeOf(env_, "nano")) {
    batch_.prev_action = {1, -1, 0, -1};
    batch_.is_first = {0, 0, 0, 1};
    batch_.is_last = {0, 1, 1, 0};
    batch_.is_terminal = {0, 1, 0, 0};
    batch_.is_idle = {0, 0, 1, 0};
    batch_.reward = {0, 0.5F, 1, 2};
    batch_.valid = {1, 0};
    for (std::size_t i = 0; i < batch_.view.size(); ++i) batch_.view[i] = static_cast<float>(i);
    for (std::uint16_t& value : batch_.deter) value = 0x3F80;  // 1 as bf16
    for (std::uint8_t& index : batch_.stoch) index = 3;
    batch_.stoch.front() = 200;  // no class of the model
  }

  const EnvSpec env_ = testing::VectorEnv();
  DreamerShape shape_;
  SequenceBatch batch_{env_, 2, 2, {.deter = 256, .stoch = 16}};
};

TEST_F(DreamerRowsTest, RowsBehindTheContextBecomeTensors) {
  DreamerRows rows(shape_, batch_);
  rows.Fill();
  EXPECT_EQ(rows.view[0][0][0].item<float>(), 8.0F) << "row 0 is the context's";
  EXPECT_TRUE(torch::equal(rows.reward, torch::tensor({{0.0F, 0.5F}, {1.0F, 2.0F}})));
  EXPECT_TRUE(torch::equal(rows.alive, torch::tensor({{1.0F, 0.0F}, {1.0F, 1.0F}})));
  EXPECT_TRUE(torch::equal(rows.not_last, torch::tensor({{1.0F, 0.0F}, {0.0F, 1.0F}})));
  EXPECT_TRUE(torch::equal(rows.keep.squeeze(-1), torch::tensor({{1.0F, 1.0F}, {1.0F, 0.0F}})));
  EXPECT_TRUE(torch::equal(rows.counts, torch::tensor({{1.0F, 1.0F}, {0.0F, 1.0F}})));
  EXPECT_FALSE(rows.begins(0));
  EXPECT_TRUE(rows.begins(1));
}

TEST_F(DreamerRowsTest, WorkThatIsAlwaysTheSameTakesEveryRowForABeginning) {
  DreamerRows rows(shape_, batch_, torch::kCPU, /*every_row_may_begin=*/true);
  rows.Fill();
  EXPECT_TRUE(rows.begins(0));
  EXPECT_TRUE(rows.begins(1));
  EXPECT_TRUE(torch::equal(rows.keep.squeeze(-1), torch::tensor({{1.0F, 1.0F}, {1.0F, 0.0F}})));
}

TEST_F(DreamerRowsTest, NoActionIsNoneOfThem) {
  DreamerRows rows(shape_, batch_);
  rows.Fill();
  const Tensor want = torch::zeros({2, 2, shape_.actions});
  want[0][0][1] = 1.0F;
  want[1][0][0] = 1.0F;
  EXPECT_TRUE(torch::equal(rows.prev_action, want));
  batch_.prev_action = {-1, -1, -1, -1};
  rows.Fill();
  EXPECT_EQ(rows.prev_action.abs().sum().item<float>(), 0.0F) << "nothing of the batch before";
}

TEST_F(DreamerRowsTest, AStateThatIsNotKnownIsZero) {
  DreamerRows rows(shape_, batch_);
  rows.Fill();
  EXPECT_TRUE(torch::equal(rows.deter[0], torch::ones({256})));
  EXPECT_EQ(rows.stoch[0][1][3].item<float>(), 1.0F);
  EXPECT_EQ(rows.stoch[0].sum().item<float>(), 15.0F) << "a class that there is not counts as none";
  EXPECT_EQ(rows.deter[1].abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(rows.stoch[1].sum().item<float>(), 0.0F);
}

}  // namespace
}  // namespace tetrion
