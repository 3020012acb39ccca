#include "services/learner/drain_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tetrion::learner {
namespace {

constexpr std::uint64_t kLanes = 100, kChunk = 8;
constexpr std::int64_t kMs = kNanosPerMilli;

// A device that makes a chunk each millisecond, in which `ended` episodes end.
struct Device {
  // Chunks until a fetch is due; it is made.
  int ChunksToFetch(std::uint64_t ended, std::uint64_t waiting) {
    int chunks = 0;
    std::uint64_t episodes = 0;
    do {
      rows += kChunk;
      now_ns += kMs;
      episodes += ended;
      ++chunks;
    } while (!pace.Due(rows, now_ns));
    pace.OnEnqueued(rows, now_ns);
    pace.OnDrained(std::min(episodes, kLanes), waiting, episodes > kLanes);
    return chunks;
  }
  DrainPace pace{kLanes, 1000 * kMs};
  std::uint64_t rows = 0;
  std::int64_t now_ns = 0;
};

TEST(DrainPaceTest, EveryChunkIsFetchedUntilTheRateIsKnown) {
  Device device;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(device.ChunksToFetch(0, 1000), 1);
}

TEST(DrainPaceTest, LongEpisodesAreFetchedOnceASecond) {
  Device device;
  int chunks = 0;
  for (int i = 0; i < 40; ++i) chunks = device.ChunksToFetch(0, 1000);
  EXPECT_EQ(chunks, 1000);
}

TEST(DrainPaceTest, FetchIsDueBeforeItWouldBeFull) {
  Device device;
  for (int i = 0; i < 40; ++i) EXPECT_LE(device.ChunksToFetch(5, 1000), 10);
  EXPECT_EQ(device.ChunksToFetch(5, 1000), 10) << "half of 100 episodes";
}

TEST(DrainPaceTest, FetchIsDueBeforeTheTokensOnTheDeviceRunOut) {
  Device device;
  for (int i = 0; i < 40; ++i) (void)device.ChunksToFetch(5, 20);
  EXPECT_EQ(device.ChunksToFetch(5, 20), 2) << "half of 20 tokens";
  EXPECT_EQ(device.ChunksToFetch(5, 0), 2);
  EXPECT_EQ(device.ChunksToFetch(5, 0), 1) << "none waits: lanes may be idle";
  device.pace.OnAdded(1000);
  EXPECT_EQ(device.ChunksToFetch(5, 1000), 10);
}

TEST(DrainPaceTest, WhatWasLeftIsFetchedAtOnce) {
  Device device;
  for (int i = 0; i < 40; ++i) (void)device.ChunksToFetch(0, 1000);
  device.rows += kChunk;
  device.pace.OnEnqueued(device.rows, device.now_ns);
  device.pace.OnDrained(kLanes, 1000, /*more=*/true);
  EXPECT_TRUE(device.pace.Due(device.rows, device.now_ns));
}

TEST(DrainPaceTest, FasterEndsAreKnownAfterOneFetch) {
  Device device;
  for (int i = 0; i < 40; ++i) (void)device.ChunksToFetch(0, 1000);
  (void)device.ChunksToFetch(0, 1000);
  (void)device.ChunksToFetch(50, 1000);  // found late
  EXPECT_EQ(device.ChunksToFetch(50, 1000), 1);
}

}  // namespace
}  // namespace tetrion::learner
