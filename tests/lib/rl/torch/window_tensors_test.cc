#include "lib/rl/torch/window_tensors.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/rows_suite.h"
#include "tests/lib/replay/scripted_selector.h"

namespace tetrion {

namespace testing {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowsSuite);  // its fixture alone is used here
}  // namespace testing

namespace {

using testing::TagOf;

// Tagged rows of two shards in device memory, and windows that the test names.
class WindowTensorsTest : public testing::RowsSuite<testing::DeviceMemory> {
 protected:
  void SetUp() override {
    if (const char* missing = testing::DeviceMemory::Missing()) GTEST_SKIP() << missing;
  }
  std::shared_ptr<SharedLease> Shared(std::uint64_t start) {
    selector_->windows = {{.shard = 1, .start = start}};
    return std::make_shared<SharedLease>(Lease(1), memory_->rows());
  }
  void Fill(int committed) {
    selector_ =
        &Build(std::make_unique<testing::ScriptedSelector>(), Limiter::Unlimited(), committed);
  }

  testing::ScriptedSelector* selector_ = nullptr;
};

TEST_F(WindowTensorsTest, ColumnsLieWhereTheReplayHasThem) {
  Fill(testing::kSuiteCapacity);
  const auto tensors = ViewWindow(Shared(7), 0);
  ASSERT_TRUE(tensors.has_value());
  const RowView row = memory_->rows().Slots(1).At(7);
  EXPECT_EQ(tensors->record.data_ptr(), row.record);
  EXPECT_EQ(tensors->action.data_ptr(), row.action);
  EXPECT_EQ(tensors->mask.data_ptr(), row.mask);
  const torch::Tensor action = tensors->action.cpu(), reward = tensors->reward.cpu();
  const torch::Tensor mask = tensors->mask.cpu();
  EXPECT_EQ(action.sizes(), (std::vector<std::int64_t>{testing::kSuiteWindow + 1, 3}));
  EXPECT_EQ(tensors->record.sizes(), (std::vector<std::int64_t>{testing::kSuiteWindow + 1, 3, 8}));
  for (int t = 0; t <= testing::kSuiteWindow; ++t) {
    for (int lane = 0; lane < 3; ++lane) {
      const std::int32_t tag = TagOf(1, 7 + static_cast<std::uint64_t>(t), lane);
      EXPECT_EQ(action[t][lane].item<std::int32_t>(), tag);
      EXPECT_EQ(reward[t][lane].item<float>(), static_cast<float>(tag) * 0.5F);
      EXPECT_EQ(mask[t][lane].item<std::int64_t>(), std::int64_t{tag} << 40);
    }
  }
}

TEST_F(WindowTensorsTest, WindowThatWrapsHasToBeGathered) {
  Fill(testing::kSuiteCapacity + testing::kSuiteStride);
  EXPECT_FALSE(ViewWindow(Shared(testing::kSuiteCapacity - 2), 0).has_value());
  EXPECT_TRUE(
      ViewWindow(Shared(testing::kSuiteCapacity - testing::kSuiteWindow - 1), 0).has_value());
}

// The writer may have the rows back once the last tensor is gone, whatever it was made from.
TEST_F(WindowTensorsTest, EveryTensorHoldsTheLease) {
  Fill(testing::kSuiteCapacity);
  auto tensors = ViewWindow(Shared(0), 0);
  ASSERT_TRUE(tensors.has_value());
  torch::Tensor part = tensors->reward.slice(/*dim=*/0, 1, 3).t();
  EXPECT_EQ(gate_->Acquire(1, 1, 0).result, AcquireResult::kLeased);
  tensors.reset();
  EXPECT_EQ(gate_->Acquire(1, 1, 0).result, AcquireResult::kLeased);
  EXPECT_EQ(part.cpu()[0][0].item<float>(), static_cast<float>(TagOf(1, 1, 0)) * 0.5F);
  part = torch::Tensor();
  EXPECT_TRUE(gate_->Acquire(1, 1, 0));
}

}  // namespace
}  // namespace tetrion
