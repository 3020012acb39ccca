#include "lib/episodes/episode_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace tetrion {
namespace {

constexpr std::size_t kObs = 8;

// Plays `length` steps of row `row` with numbers that tell row and step.
void Play(EpisodeBatch& batch, int row, int length) {
  for (int k = 0; k < length; ++k) {
    std::memset(batch.Observation(row, k), 0x11, kObs);
    batch.SetAction(row, k, row + 1, -0.5F, 2.0F);
    batch.SetOutcome(row, k, static_cast<float>(k + 1), k + 1 == length);
  }
  batch.Finish(row, {.job = static_cast<std::uint64_t>(row), .length = length, .terminated = true});
}

// Whether steps [length, K) of `row` are padding and the step before is not.
void ExpectPadded(EpisodeBatch& batch, int row, int length) {
  const std::byte zeros[kObs] = {};
  for (int k = 0; k < batch.steps(); ++k) {
    const auto at = static_cast<std::size_t>(row * batch.steps() + k);
    const bool played = k < length;
    EXPECT_EQ(std::memcmp(batch.Observation(row, k), zeros, kObs) != 0, played) << k;
    EXPECT_EQ(batch.rewards[at], played ? static_cast<float>(k + 1) : 0.0F);
    EXPECT_EQ(batch.actions[at], played ? row + 1 : 0);
    EXPECT_EQ(batch.log_probs[at], played ? -0.5F : 0.0F);
    EXPECT_EQ(batch.values[at], played ? 2.0F : 0.0F);
    EXPECT_EQ(batch.dones[at], played && k + 1 < length ? 0 : 1);
  }
  EXPECT_EQ(batch.lengths[static_cast<std::size_t>(row)], length);
}

TEST(EpisodeBatchTest, FreshRowsArePaddedWhateverTheirLength) {
  EpisodeBatch batch(4, 5, kObs);
  for (int row = 0; row < 4; ++row) Play(batch, row, row + 2);
  for (int row = 0; row < 4; ++row) ExpectPadded(batch, row, row + 2);
}

TEST(EpisodeBatchTest, ShorterEpisodeClearsTheLongerOneBeforeIt) {
  EpisodeBatch batch(2, 5, kObs);
  Play(batch, 1, 5);
  Play(batch, 1, 2);
  ExpectPadded(batch, 1, 2);
  Play(batch, 1, 4);
  ExpectPadded(batch, 1, 4);
}

TEST(EpisodeBatchTest, AbandonedStepsAreClearedByTheNextEpisode) {
  EpisodeBatch batch(1, 5, kObs);
  for (int k = 0; k < 4; ++k) std::memset(batch.Observation(0, k), 0x77, kObs);
  batch.SetAction(0, 3, 9, 1.0F, 1.0F);
  batch.Abandon(0, 4);
  Play(batch, 0, 1);
  ExpectPadded(batch, 0, 1);
}

TEST(EpisodeBatchTest, DirtyBatchIsPaddedToTheEnd) {
  EpisodeBatch batch(1, 5, kObs);
  std::memset(batch.observations(), 0xFF, 5 * kObs);
  std::fill(batch.rewards.begin(), batch.rewards.end(), 3.0F);
  std::fill(batch.actions.begin(), batch.actions.end(), 3);
  std::fill(batch.log_probs.begin(), batch.log_probs.end(), 3.0F);
  std::fill(batch.values.begin(), batch.values.end(), 3.0F);
  std::fill(batch.dones.begin(), batch.dones.end(), std::uint8_t{0});
  batch.MarkDirty();
  Play(batch, 0, 1);
  ExpectPadded(batch, 0, 1);
}

TEST(EpisodeBatchTest, CopiedRowIsWholeAndPadded) {
  EpisodeBatch from(3, 5, kObs), to(2, 5, kObs);
  Play(from, 1, 3);
  std::memset(from.FinalObservation(1), 0x55, kObs);
  Play(to, 1, 5);
  to.CopyRow(1, from, 1);
  ExpectPadded(to, 1, 3);
  EXPECT_EQ(std::memcmp(to.FinalObservation(1), from.FinalObservation(1), kObs), 0);
  EXPECT_EQ(to.job_ids[1], 1);
  EXPECT_EQ(to.terminated[1], 1);
}

TEST(EpisodeBatchTest, MasksAreWrittenBitByBitPaddedAndCopied) {
  constexpr int kActions = 40;
  EpisodeBatch from(2, 5, kObs, kActions), to(1, 5, kObs, kActions);
  const auto play = [](EpisodeBatch& batch, int row, int length) {
    for (int k = 0; k < length; ++k) {
      batch.SetMask(row, k, std::uint64_t{1} << (k + 1) | 1ULL << 39 | 1ULL << 40);
    }
    Play(batch, row, length);
  };
  const auto expect = [](const EpisodeBatch& batch, int row, int length) {
    for (int k = 0; k < 5; ++k) {
      for (int a = 0; a < kActions; ++a) {
        const bool legal = k < length && (a == k + 1 || a == 39);
        const auto at = static_cast<std::size_t>((row * 5 + k) * kActions + a);
        EXPECT_EQ(batch.action_masks[at], legal ? 1 : 0) << row << ' ' << k << ' ' << a;
      }
    }
  };
  play(from, 0, 5);
  play(from, 1, 4);
  play(from, 1, 2);
  expect(from, 0, 5);
  expect(from, 1, 2);
  play(to, 0, 5);
  to.CopyRow(0, from, 1);
  expect(to, 0, 2);
  EXPECT_EQ(EpisodeBatch(1, 5, kObs).action_masks.size(), 0U);
}

}  // namespace
}  // namespace tetrion
