#include "lib/weights/learner_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lib/core/clock.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kRun = 0xABC;
constexpr std::uint64_t kSpec = 0x5EC;
constexpr std::uint64_t kMaxBytes = 1000;

std::vector<std::byte> Blob(int value) {
  return std::vector<std::byte>(kMaxBytes, static_cast<std::byte>(value));
}

TEST(LearnerRegionTest, ActorWaitsUntilTheLearnerIsThere) {
  const ScratchDir scratch;
  EXPECT_FALSE(LearnerRegion::Attach(scratch.path(), kRun, kSpec));
  {
    const Region half_made =
        Region::Create(scratch.path(), LearnerName(kRun), RegionKind::kLearner, 65536, kRun, kSpec);
    EXPECT_FALSE(LearnerRegion::Attach(scratch.path(), kRun, kSpec));
  }
  const LearnerRegion learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  EXPECT_FALSE(learner.adopted());
  const auto actor = LearnerRegion::Attach(scratch.path(), kRun, kSpec);
  ASSERT_TRUE(actor);
  EXPECT_TRUE(actor->OwnerAlive());
  EXPECT_EQ(actor->max_blob_bytes(), learner.max_blob_bytes());
  EXPECT_GE(actor->max_blob_bytes(), kMaxBytes);
}

TEST(LearnerRegionTest, ActorOfAnotherLayoutIsRefused) {
  const ScratchDir scratch;
  const LearnerRegion learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  const Error error = ErrorOf([&] { LearnerRegion::Attach(scratch.path(), kRun, kSpec + 1); });
  EXPECT_EQ(error.code(), ExitCode::kConfig);
}

TEST(LearnerRegionTest, ActorWaitsForTheSuccessorOfADeadLearnerWhoseRegionIsDamaged) {
  const ScratchDir scratch;
  const auto create = [&] {
    return LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  };
  std::optional<LearnerRegion> learner = create();
  learner->region().header().magic.store(1);
  const Error alive = ErrorOf([&] { LearnerRegion::Attach(scratch.path(), kRun, kSpec); });
  EXPECT_EQ(alive.code(), ExitCode::kConfig);
  learner.reset();
  EXPECT_FALSE(LearnerRegion::Attach(scratch.path(), kRun, kSpec));
  learner = create();
  EXPECT_FALSE(learner->adopted());
  EXPECT_TRUE(LearnerRegion::Attach(scratch.path(), kRun, kSpec));
}

TEST(LearnerRegionTest, BellAndWeightsReachTheOtherMapping) {
  const ScratchDir scratch;
  const LearnerRegion learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  const auto actor = LearnerRegion::Attach(scratch.path(), kRun, kSpec);
  ASSERT_TRUE(actor);
  const std::uint32_t armed = learner.bell().Arm();
  actor->bell().Ring();
  EXPECT_EQ(learner.bell().Wait(armed, 0), BellResult::kRung);
  learner.MakeWriter().Publish(1, Blob(1));
  WeightsSlotReader reader = actor->MakeReader();
  std::vector<std::byte> out;
  std::uint32_t version = 0;
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  EXPECT_EQ(out, Blob(1));
}

TEST(LearnerRegionTest, BellsOfIngestAndInferenceAreApart) {
  const ScratchDir scratch;
  const LearnerRegion learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  const std::uint32_t ingest = learner.bell().Arm();
  const std::uint32_t inference = learner.inference_bell().Arm();
  LearnerRegion::Attach(scratch.path(), kRun, kSpec)->inference_bell().Ring();
  EXPECT_EQ(learner.inference_bell().Wait(inference, 0), BellResult::kRung);
  EXPECT_EQ(learner.bell().Wait(ingest, 0), BellResult::kTimeout);
}

TEST(LearnerWatchTest, FindsTheLearnerOnceItIsThereAndSeesItsDeath) {
  const ScratchDir scratch;
  LearnerWatch watch({.shm_dir = scratch.path(), .run_id = kRun, .spec_hash = kSpec});
  EXPECT_EQ(watch.Find(), nullptr);
  EXPECT_FALSE(watch.Gone());  // it has never been there
  std::optional<LearnerRegion> learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  bool fresh = false;
  const Deadline deadline = Deadline::AfterMs(10'000);
  while (watch.Find(&fresh) == nullptr) ASSERT_FALSE(deadline.Passed());
  EXPECT_TRUE(fresh);
  EXPECT_NE(watch.Find(&fresh), nullptr);
  EXPECT_FALSE(fresh);
  EXPECT_FALSE(watch.Gone());
  learner.reset();
  EXPECT_TRUE(watch.Gone());
}

// The first learner died, a clean-up took its region, the second one made another.
TEST(LearnerWatchTest, RegionThatWasMadeAnewReplacesTheOneThatWasRemoved) {
  const ScratchDir scratch;
  FakeClock clock;
  LearnerWatch watch({.shm_dir = scratch.path(), .run_id = kRun, .spec_hash = kSpec}, clock);
  std::optional<LearnerRegion> first =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  bool fresh = false;
  ASSERT_NE(watch.Find(&fresh), nullptr);
  ASSERT_TRUE(fresh);
  first->region().Unlink();
  first.reset();
  clock.AdvanceMs(150);
  ASSERT_NE(watch.Find(&fresh), nullptr);  // its weights serve until there are others
  EXPECT_FALSE(fresh);
  EXPECT_TRUE(watch.Gone());

  const LearnerRegion second = LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  clock.AdvanceMs(150);
  LearnerRegion* found = watch.Find(&fresh);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(fresh);
  EXPECT_FALSE(watch.Gone());
  const std::uint32_t armed = second.bell().Arm();
  found->bell().Ring();
  EXPECT_EQ(second.bell().Wait(armed, 0), BellResult::kRung);
  clock.AdvanceMs(150);
  EXPECT_EQ(watch.Find(&fresh), found);
  EXPECT_FALSE(fresh);
}

TEST(LearnerWatchTest, AdoptedRegionStaysTheSame) {
  const ScratchDir scratch;
  FakeClock clock;
  LearnerWatch watch({.shm_dir = scratch.path(), .run_id = kRun, .spec_hash = kSpec}, clock);
  std::optional<LearnerRegion> learner =
      LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  ASSERT_NE(watch.Find(), nullptr);
  learner.reset();
  learner = LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  clock.AdvanceMs(150);
  bool fresh = true;
  ASSERT_NE(watch.Find(&fresh), nullptr);
  EXPECT_FALSE(fresh);
  EXPECT_FALSE(watch.Gone());
}

TEST(LearnerRegionTest, RestartedLearnerAdoptsAndActorsKeepTheirMapping) {
  const ScratchDir scratch;
  PausedChild first([&] {
    const LearnerRegion learner =
        LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
    learner.MakeWriter().Publish(7, Blob(7));
    raise(SIGSTOP);
  });
  const auto actor = LearnerRegion::Attach(scratch.path(), kRun, kSpec);
  ASSERT_TRUE(actor);
  WeightsSlotReader reader = actor->MakeReader();
  std::vector<std::byte> out;
  std::uint32_t version = 0;
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  const auto adopt = [&] {
    return LearnerRegion::CreateOrAdopt(scratch.path(), kRun, kMaxBytes, kSpec);
  };
  EXPECT_EQ(ErrorOf([&] { adopt(); }).code(), ExitCode::kTryAgain);
  first.Kill();
  EXPECT_FALSE(actor->OwnerAlive());
  const LearnerRegion second = adopt();
  EXPECT_TRUE(second.adopted());
  EXPECT_TRUE(actor->OwnerAlive());
  WeightsSlotWriter writer = second.MakeWriter();
  EXPECT_EQ(writer.NewestVersion(), 7U);
  writer.Publish(1000, Blob(8));
  ASSERT_EQ(reader.Read(out, version), WeightsRead::kFresh);
  EXPECT_EQ(version, 1000U);
  EXPECT_EQ(out, Blob(8));
}

}  // namespace
}  // namespace tetrion
