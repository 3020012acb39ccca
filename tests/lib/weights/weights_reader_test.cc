#include "lib/weights/weights_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tetrion {
namespace {

// A policy whose weights are eight bytes.
class EightBytePolicy final : public Policy {
 public:
  ActResult Act(const PolicyInput&, const PolicyOutput&) override { return ActResult::kOk; }
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override {
    if (blob.size() != 8) return LoadResult::kWrongSize;
    version_ = version;
    return LoadResult::kLoaded;
  }
  std::size_t WeightsBytes() const override { return 8; }
  std::uint32_t version() const override { return version_; }

 private:
  std::uint32_t version_ = 0;
};

class WeightsReaderTest : public ::testing::Test {
 protected:
  WeightsReaderTest() {
    char pattern[] = "/tmp/tetrion_weights_XXXXXX";
    dir_ = mkdtemp(pattern);
  }
  ~WeightsReaderTest() override { std::filesystem::remove_all(dir_); }
  // The region is looked for every few milliseconds; asks until `weights` has seen it.
  static bool RefreshUntilReady(WeightsReader& weights, Policy& policy) {
    for (int i = 0; i < 5000; ++i) {
      if (weights.Refresh(policy)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  std::string dir_;
};

TEST_F(WeightsReaderTest, WaitsForTheRegionThenTakesEachNewVersionOnce) {
  bool attached = false;
  WeightsReader weights({.shm_dir = dir_, .run_id = 7, .spec_hash = 9},
                        [&attached](Bell) { attached = true; });
  EightBytePolicy policy;
  EXPECT_FALSE(weights.Refresh(policy));

  LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  WeightsSlotWriter writer = learner.MakeWriter();
  for (int i = 0; i < 5000 && !attached; ++i) {
    EXPECT_FALSE(weights.Refresh(policy)) << "nothing is published yet";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(attached);
  const std::vector<std::byte> blob(8);
  writer.Publish(3, blob);
  ASSERT_TRUE(RefreshUntilReady(weights, policy));
  EXPECT_TRUE(attached);
  EXPECT_EQ(policy.version(), 3U);
  writer.Publish(4, blob);
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 4U);
}

TEST_F(WeightsReaderTest, PolicyWithoutWeightsWaitsForNoLearner) {
  struct NoWeights final : WeightsUser {
    std::size_t WeightsBytes() const override { return 0; }
    LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t) override {
      return LoadResult::kWrongSize;
    }
    std::uint32_t version() const override { return 0; }
  } random;
  WeightsReader weights({.shm_dir = dir_, .run_id = 7, .spec_hash = 9}, [](Bell) {});
  EXPECT_TRUE(weights.Refresh(random));
  const LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  EXPECT_TRUE(weights.Refresh(random));
}

TEST_F(WeightsReaderTest, RefusedWeightsAreCountedAndTheOldOnesStay) {
  LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  WeightsSlotWriter writer = learner.MakeWriter();
  WeightsReader weights({.shm_dir = dir_, .run_id = 7, .spec_hash = 9}, [](Bell) {});
  EightBytePolicy policy;
  writer.Publish(1, std::vector<std::byte>(8));
  ASSERT_TRUE(RefreshUntilReady(weights, policy));
  writer.Publish(2, std::vector<std::byte>(16));
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 1U);
  EXPECT_EQ(weights.refused(), 1U);
}

// A worker asks before every row: it must not copy and hash a blob that stays wrong each time.
TEST_F(WeightsReaderTest, BlobThatIsNotWhatItsHashSaysIsCountedOnceAndTriedAgainAfterAPause) {
  FakeClock clock;
  LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  WeightsSlotWriter writer = learner.MakeWriter();
  WeightsReader weights({.shm_dir = dir_, .run_id = 7, .spec_hash = 9}, [](Bell) {}, clock);
  EightBytePolicy policy;
  writer.Publish(1, std::vector<std::byte>(8));
  ASSERT_TRUE(weights.Refresh(policy));
  writer.Publish(2, std::vector<std::byte>(8));
  std::byte* slots = learner.region().data() + learner.region().size() - WeightsSlotBytes(64);
  std::byte& byte = slots[sizeof(WeightsBlock) + 2 * WeightsRoomBytes(64)];
  for (int round = 0; round < 2; ++round) {
    byte = std::byte{1};
    EXPECT_TRUE(weights.Refresh(policy));
    byte = std::byte{0};
    for (int row = 0; row < 1000; ++row) EXPECT_TRUE(weights.Refresh(policy));
    EXPECT_EQ(policy.version(), 1U) << "it was copied again at once";
    EXPECT_EQ(weights.refused(), 1U);
    clock.AdvanceMs(100);
  }
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 2U);

  writer.Publish(3, std::vector<std::byte>(8));
  slots[sizeof(WeightsBlock) + 3 * WeightsRoomBytes(64)] = std::byte{1};
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 2U);
  EXPECT_EQ(weights.refused(), 2U);
  writer.Publish(4, std::vector<std::byte>(8));
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 4U) << "a newer one waits for no pause";
}

TEST_F(WeightsReaderTest, RegionMadeAnewIsTakenOverAndNeverLowersTheVersion) {
  FakeClock clock;
  std::vector<Bell> bells;
  WeightsReader weights(
      {.shm_dir = dir_, .run_id = 7, .spec_hash = 9}, [&](Bell bell) { bells.push_back(bell); },
      clock);
  EightBytePolicy policy;
  std::optional<LearnerRegion> first = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  first->MakeWriter().Publish(1005, std::vector<std::byte>(8));
  ASSERT_TRUE(weights.Refresh(policy));
  first->region().Unlink();
  first.reset();
  LearnerRegion second = LearnerRegion::CreateOrAdopt(dir_, 7, 64, 9);
  WeightsSlotWriter writer = second.MakeWriter();
  clock.AdvanceMs(150);
  EXPECT_TRUE(weights.Refresh(policy));  // plays on with what it has
  EXPECT_EQ(policy.version(), 1005U);
  ASSERT_EQ(bells.size(), 2U);
  const std::uint32_t armed = second.bell().Arm();
  bells.back().Ring();
  EXPECT_EQ(second.bell().Wait(armed, 0), BellResult::kRung);

  writer.Publish(1004, std::vector<std::byte>(8));  // no learner would
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 1005U);
  writer.Publish(2001, std::vector<std::byte>(8));
  EXPECT_TRUE(weights.Refresh(policy));
  EXPECT_EQ(policy.version(), 2001U);
}

}  // namespace
}  // namespace tetrion
