#include "services/actor/weights_pull.h"

#include <gtest/gtest.h>

#include "lib/weights/weights_slot.h"
#include "tests/services/actor/rows_world.h"

namespace tetrion::actor {
namespace {

using testing::RecordingPort;
using wire::WeightsChunk;
using wire::WeightsGet;

constexpr std::uint64_t kBytes = 6 * wire::kWeightsChunkBytes + 100;  // seven chunks

class WeightsPullTest : public ::testing::Test {
 protected:
  std::vector<std::uint32_t> Asked() {
    RecordingPort port;
    pull_.Send(port);
    std::vector<std::uint32_t> chunks;
    for (const WeightsGet& get : port.All<WeightsGet>()) chunks.push_back(get.chunk);
    return chunks;
  }
  static std::vector<std::byte> Blob(std::uint32_t version) {
    return std::vector<std::byte>(kBytes, static_cast<std::byte>(version));
  }
  void Give(std::uint32_t version, std::uint32_t chunk, std::uint64_t hash_change = 0) {
    const std::vector<std::byte> blob = Blob(version);
    const std::uint64_t begin = chunk * std::uint64_t{wire::kWeightsChunkBytes};
    pull_.On(WeightsChunk{version, chunk, kBytes, WeightsHash(blob, version) + hash_change},
             std::span(blob).subspan(
                 begin, std::min<std::uint64_t>(wire::kWeightsChunkBytes, kBytes - begin)));
  }
  void GiveAll(std::uint32_t version, std::uint64_t hash_change = 0) {
    for (std::uint32_t c = 0; c < 7; ++c) Give(version, c, hash_change);
  }

  FakeClock clock_;
  WeightsInbox inbox_;
  WeightsPull pull_{kBytes, inbox_, clock_};
};

using Chunks = std::vector<std::uint32_t>;

TEST_F(WeightsPullTest, AsksAFewChunksAheadUntilTheVersionIsWhole) {
  EXPECT_TRUE(Asked().empty());
  pull_.OnNewest(3);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
  Give(3, 0);
  Give(3, 1);
  EXPECT_EQ(Asked(), (Chunks{4, 5}));
  for (std::uint32_t c = 2; c < 7; ++c) Give(3, c);
  EXPECT_TRUE(Asked().empty());
  ASSERT_EQ(inbox_.version(), 3U);
  EXPECT_EQ(inbox_.Newest()->bytes, Blob(3));
  EXPECT_EQ(pull_.stats().versions, 1U);
}

TEST_F(WeightsPullTest, WhatDoesNotComeIsAskedForAgain) {
  pull_.OnNewest(3);
  Asked();
  Give(3, 0);
  Give(3, 2);  // chunk 1 was lost: what follows it is asked for with it
  EXPECT_EQ(Asked(), (Chunks{4}));
  clock_.AdvanceMs(1000);
  EXPECT_EQ(Asked(), (Chunks{1, 2, 3, 4}));
  pull_.AskAgain();
  EXPECT_EQ(Asked(), (Chunks{1, 2, 3, 4})) << "a new connection";
}

TEST_F(WeightsPullTest, SlowNetworkIsNotAskedEverySecond) {
  pull_.OnNewest(3);
  Asked();
  clock_.AdvanceMs(1000);
  EXPECT_EQ(Asked().size(), 4U);
  clock_.AdvanceMs(1999);
  EXPECT_TRUE(Asked().empty());
  Give(3, 0);  // took 2 s: twice as long is waited for the next
  EXPECT_EQ(Asked(), (Chunks{4}));
  clock_.AdvanceMs(3990);
  EXPECT_TRUE(Asked().empty());
  clock_.AdvanceMs(10);
  EXPECT_EQ(Asked(), (Chunks{1, 2, 3, 4}));
}

// Behind four chunks of 32 KiB the answers to rows would wait for a second at 1 Mbit/s.
TEST_F(WeightsPullTest, SlowLineHasOneChunkOnItsWayOfFourTwoToBeMeasuredAgain) {
  pull_.OnNewest(3);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
  for (std::uint32_t c = 0; c < 4; ++c) {
    clock_.AdvanceMs(262);
    Give(3, c);
    EXPECT_EQ(Asked(), c <= 1 ? (Chunks{c + 4}) : (Chunks{})) << c;
  }
  for (std::uint32_t c = 4; c < 7; ++c) {
    clock_.AdvanceMs(262);
    Give(3, c);
    EXPECT_EQ(Asked(), c == 5 ? (Chunks{6}) : (Chunks{})) << c;
  }
  EXPECT_EQ(inbox_.version(), 3U);
  pull_.OnNewest(4);
  EXPECT_EQ(Asked(), (Chunks{0, 1}));
  clock_.AdvanceMs(300);
  Give(4, 0);
  EXPECT_TRUE(Asked().empty());
  clock_.AdvanceMs(50);  // 5 Mbit/s now: two fit into 100 ms
  Give(4, 1);
  EXPECT_EQ(Asked(), (Chunks{2, 3, 4}));
}

TEST_F(WeightsPullTest, RoundTripBetweenBurstsIsNoSlowLine) {
  pull_.OnNewest(3);
  Asked();
  for (std::uint32_t c = 0; c < 6; ++c) {
    clock_.AdvanceMs(c == 0 || c == 4 ? 400 : 3);
    Give(3, c);
    EXPECT_EQ(Asked(), c <= 2 ? (Chunks{c + 4}) : (Chunks{})) << c;
  }
  clock_.AdvanceMs(3);
  Give(3, 6);
  pull_.OnNewest(4);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
}

TEST_F(WeightsPullTest, LongRoundTripIsNoSlowLine) {
  pull_.OnNewest(3);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
  clock_.AdvanceMs(400);
  for (std::uint32_t c = 0; c < 4; ++c) Give(3, c);
  EXPECT_EQ(Asked(), (Chunks{4, 5, 6}));
  pull_.AskAgain();
  EXPECT_EQ(Asked(), (Chunks{4, 5, 6}));
  clock_.AdvanceMs(400);  // the first one since: it tells nothing of the line
  for (std::uint32_t c = 4; c < 7; ++c) Give(3, c);
  pull_.OnNewest(4);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
}

TEST_F(WeightsPullTest, VersionThatWasBegunIsFinishedBeforeTheNext) {
  pull_.OnNewest(3);
  Asked();
  pull_.OnNewest(5);
  EXPECT_EQ(inbox_.published(), 5U);
  GiveAll(3);
  EXPECT_EQ(inbox_.version(), 3U);
  pull_.OnNewest(5);
  Asked();
  GiveAll(5);
  EXPECT_EQ(inbox_.version(), 5U);
}

TEST_F(WeightsPullTest, DroppedVersionIsGivenUpForTheNewest) {
  pull_.OnNewest(3);
  Asked();
  Give(3, 0);
  pull_.On(wire::WeightsGone{.version = 3, .newest = 6});
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
  GiveAll(6);
  EXPECT_EQ(inbox_.version(), 6U);
  pull_.On(wire::WeightsGone{.version = 6, .newest = 0});
  EXPECT_TRUE(Asked().empty());
}

TEST_F(WeightsPullTest, RefusedActorAsksAgainALittleLater) {
  pull_.OnNewest(3);
  Asked();
  pull_.On(wire::WeightsRefused{.version = 2, .text = "of an earlier request"});
  Give(3, 0);
  EXPECT_EQ(Asked(), (Chunks{4}));
  pull_.On(wire::WeightsRefused{.version = 3, .text = "no stream"});
  pull_.OnNewest(3);
  EXPECT_TRUE(Asked().empty());
  clock_.AdvanceMs(1000);
  pull_.OnNewest(4);
  EXPECT_EQ(Asked(), (Chunks{0, 1, 2, 3}));
  GiveAll(4);
  EXPECT_EQ(inbox_.version(), 4U);
  EXPECT_EQ(pull_.stats().refused, 0U) << "no weights were wrong";
}

TEST_F(WeightsPullTest, WrongHashIsRefusedAndTriedAgainLater) {
  pull_.OnNewest(3);
  Asked();
  GiveAll(3, /*hash_change=*/1);
  EXPECT_EQ(inbox_.Newest(), nullptr);
  EXPECT_EQ(pull_.stats().refused, 1U);
  pull_.OnNewest(3);
  EXPECT_TRUE(Asked().empty()) << "not at once";
  clock_.AdvanceMs(1000);
  pull_.OnNewest(3);
  Asked();
  GiveAll(3);
  EXPECT_EQ(inbox_.version(), 3U);
}

TEST_F(WeightsPullTest, ChunkOfAnotherSizeEndsTheVersion) {
  pull_.OnNewest(3);
  Asked();
  const std::vector<std::byte> payload(10);
  pull_.On(WeightsChunk{3, 0, kBytes, 1}, payload);
  EXPECT_EQ(pull_.stats().refused, 1U);
  clock_.AdvanceMs(1000);
  pull_.OnNewest(3);
  Asked();
  pull_.On(WeightsChunk{3, 0, kBytes + 1, 1}, Blob(3));
  EXPECT_EQ(pull_.stats().refused, 2U);
  EXPECT_TRUE(Asked().empty());
}

TEST_F(WeightsPullTest, OlderVersionIsNotFetchedAndAPolicyWithoutWeightsFetchesNone) {
  pull_.OnNewest(3);
  Asked();
  GiveAll(3);
  pull_.OnNewest(2);
  EXPECT_TRUE(Asked().empty());
  WeightsPull none(0, inbox_, clock_);
  none.OnNewest(9);
  RecordingPort port;
  EXPECT_EQ(none.Send(port), 0);
  EXPECT_EQ(inbox_.published(), 9U);
}

}  // namespace
}  // namespace tetrion::actor
