#include "lib/episodes/batch_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace tetrion {
namespace {

constexpr std::size_t kObs = 8;

TEST(BatchPoolTest, BatchComesBackWhenItsLastHolderLetsGo) {
  const auto pool = std::make_shared<BatchPool>();
  auto batch = pool->Take(4, 5, kObs);
  EpisodeBatch* const first = batch.get();
  auto second_holder = batch;
  batch.reset();
  EXPECT_EQ(pool->idle(), 0);
  second_holder.reset();
  EXPECT_EQ(pool->idle(), 1);
  EXPECT_EQ(pool->Take(3, 5, kObs).get(), first);  // fewer episodes fit
  EXPECT_NE(pool->Take(3, 6, kObs).get(), first);  // another shape does not
  EXPECT_NE(pool->Take(5, 5, kObs).get(), first);  // nor do more episodes
}

TEST(BatchPoolTest, BatchOfOtherMasksDoesNotFit) {
  const auto pool = std::make_shared<BatchPool>();
  pool->Take(1, 1, kObs).reset();
  EXPECT_EQ(pool->idle(), 1);
  EXPECT_EQ(pool->Take(1, 1, kObs, 2)->mask_actions(), 2);
  EXPECT_EQ(pool->idle(), 2);
}

TEST(BatchPoolTest, KeepsTwoBatchesAndOutlivesItsOwner) {
  auto pool = std::make_shared<BatchPool>();
  auto a = pool->Take(1, 1, kObs), b = pool->Take(1, 1, kObs), c = pool->Take(1, 1, kObs);
  a.reset();
  b.reset();
  c.reset();
  EXPECT_EQ(pool->idle(), 2);
  auto last = pool->Take(1, 1, kObs);
  pool.reset();
  last->SetAction(0, 0, 1, 0.0F, 0.0F);
  EXPECT_EQ(last->actions[0], 1);
}

TEST(BatchPoolTest, BatchThatRequestsPassOverIsFreed) {
  const auto pool = std::make_shared<BatchPool>();
  pool->Take(1000, 1, kObs).reset();
  for (int request = 0; request < 2; ++request) {
    pool->Take(1, 1, kObs).reset();
    EXPECT_EQ(pool->idle(), 2) << "the large one may be wanted again";
  }
  pool->Take(1, 1, kObs).reset();
  EXPECT_EQ(pool->idle(), 1);
}

TEST(BatchPoolTest, RequestsOfTwoSizesInTurnFindTheirBatches) {
  const auto pool = std::make_shared<BatchPool>();
  auto small = pool->Take(1, 1, kObs), large = pool->Take(1000, 1, kObs);
  EpisodeBatch *const first_small = small.get(), *const first_large = large.get();
  for (int round = 0; round < 10; ++round) {
    small.reset();
    large.reset();
    for (int request = 0; request < 2; ++request) {
      small = pool->Take(1, 1, kObs);
      EXPECT_EQ(small.get(), first_small) << round;
      if (request == 0) small.reset();
    }
    large = pool->Take(1000, 1, kObs);
    EXPECT_EQ(large.get(), first_large) << round;
  }
}

TEST(BatchPoolTest, ClosedPoolFreesWhatItHasAndWhatComesBack) {
  const auto pool = std::make_shared<BatchPool>();
  auto idle = pool->Take(1, 1, kObs), out = pool->Take(1, 1, kObs);
  idle.reset();
  pool->Close();
  EXPECT_EQ(pool->idle(), 0);
  out->SetAction(0, 0, 1, 0.0F, 0.0F);  // the holder's as before
  out.reset();
  EXPECT_EQ(pool->idle(), 0);
}

// Rows long enough to give pages back: 1.3 MB of observations.
constexpr int kLongSteps = 20'000;
constexpr std::size_t kLongObs = 64;
constexpr int kRows = 3;
constexpr int kActions = 40;

void PlayLong(EpisodeBatch& batch, int length) {
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < length; ++k) {
      std::memset(batch.Observation(row, k), 0x11, kLongObs);
      batch.SetAction(row, k, 1, -0.5F, 2.0F);
      batch.SetOutcome(row, k, 1.0F, k + 1 == length);
      batch.SetMask(row, k, ~std::uint64_t{0});
    }
    batch.Finish(row, {.length = length, .terminated = true});
  }
}

// Every element behind step `length` of every row.
void ExpectLongPadding(EpisodeBatch& batch, int length) {
  for (int row = 0; row < kRows; ++row) {
    const auto played = static_cast<std::ptrdiff_t>(length);
    const std::ptrdiff_t begin = std::ptrdiff_t{row} * kLongSteps + played;
    const std::ptrdiff_t end = std::ptrdiff_t{row + 1} * kLongSteps;
    const std::byte* const seen = batch.observations();
    const auto all = [&](auto from, auto value) {
      return std::all_of(from + begin, from + end, [&](auto x) { return x == value; });
    };
    const auto bytes = static_cast<std::ptrdiff_t>(kLongObs);
    EXPECT_TRUE(std::all_of(seen + begin * bytes, seen + end * bytes,
                            [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(batch.Observation(row, length - 1)[0], std::byte{0x11});
    const std::uint8_t* const masks = batch.action_masks.data();
    EXPECT_TRUE(std::all_of(masks + begin * kActions, masks + end * kActions,
                            [](std::uint8_t b) { return b == 0; }));
    EXPECT_TRUE(all(batch.rewards.begin(), 0.0F));
    EXPECT_TRUE(all(batch.actions.begin(), 0));
    EXPECT_TRUE(all(batch.log_probs.begin(), 0.0F));
    EXPECT_TRUE(all(batch.values.begin(), 0.0F));
    EXPECT_TRUE(all(batch.dones.begin(), std::uint8_t{1}));
    EXPECT_EQ(batch.dones[static_cast<std::size_t>(begin - 1)], 1);
  }
}

TEST(BatchPoolTest, ReusedBatchIsPaddedInProportionToTheStepsPlayed) {
  const auto pool = std::make_shared<BatchPool>();
  constexpr std::uint64_t kPageBytes = 4096;
  // A byte of `dones` a step, the edges of six arrays' pages, and 90 steps of the longer game.
  constexpr std::uint64_t kMostBytes =
      kRows * (kLongSteps + 2 * 6 * kPageBytes + 90 * (kLongObs + 17 + kActions));
  auto batch = pool->Take(kRows, kLongSteps, kLongObs, kActions);
  EpisodeBatch* const first = batch.get();
  PlayLong(*batch, 100);
  EXPECT_EQ(batch->padded_bytes(), 0U) << "fresh pages are zeros";
  for (const int length : {10, 100, 20, 100}) {
    batch.reset();
    batch = pool->Take(kRows, kLongSteps, kLongObs, kActions);
    ASSERT_EQ(batch.get(), first);
    const std::uint64_t before = batch->padded_bytes();
    PlayLong(*batch, length);
    EXPECT_LT(batch->padded_bytes() - before, kMostBytes);
    ExpectLongPadding(*batch, length);
  }
}

TEST(BatchPoolTest, WhatItsHolderWroteAnywhereIsGone) {
  const auto pool = std::make_shared<BatchPool>();
  auto batch = pool->Take(kRows, kLongSteps, kLongObs, kActions);
  for (const int length : {7, kLongSteps - 1, 1000, 9}) {
    std::memset(batch->observations(), 0xFF, kRows * kLongSteps * kLongObs);
    std::fill(batch->rewards.begin(), batch->rewards.end(), 3.0F);
    std::fill(batch->actions.begin(), batch->actions.end(), 3);
    std::fill(batch->log_probs.begin(), batch->log_probs.end(), 3.0F);
    std::fill(batch->values.begin(), batch->values.end(), 3.0F);
    std::fill(batch->dones.begin(), batch->dones.end(), std::uint8_t{0});
    std::fill(batch->action_masks.begin(), batch->action_masks.end(), std::uint8_t{1});
    batch.reset();
    batch = pool->Take(kRows, kLongSteps, kLongObs, kActions);
    PlayLong(*batch, length);
    ExpectLongPadding(*batch, length);
  }
}

// The batches of a double buffer are nobody else's to write; a long game leaves no memory behind.
TEST(BatchPoolTest, LongGameIsFollowedByShortOnesWithoutItsPadding) {
  EpisodeBatch batch(kRows, kLongSteps, kLongObs, kActions);
  PlayLong(batch, kLongSteps - 1);
  EXPECT_EQ(batch.padded_bytes(), 0U);
  PlayLong(batch, 5);
  ExpectLongPadding(batch, 5);
  EXPECT_LT(batch.padded_bytes(), std::uint64_t{kRows * (kLongSteps + 12 * 4096)});
  const std::uint64_t before = batch.padded_bytes();
  PlayLong(batch, 9);
  EXPECT_EQ(batch.padded_bytes(), before);
}

}  // namespace
}  // namespace tetrion
