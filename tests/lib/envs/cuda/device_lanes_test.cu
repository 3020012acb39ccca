#include "lib/envs/cuda/device_lanes.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/host_copy_guard.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/envs/cuda/lanes_driver.cuh"
#include "tests/lib/envs/cuda/same_play.cuh"

namespace tetrion {
namespace {

using testing::CpuSide;
using testing::DeviceLanesOf;
using testing::DeviceSide;
using testing::ExpectSameEpisodes;
using testing::ExpectSamePlay;
using testing::MixedTokens;
using testing::SameRow;
using testing::VersionOfRow;

class DeviceLanesTest : public cuda::DeviceFixture {};

// 1e6 steps in all, by the three below.
TEST_F(DeviceLanesTest, TetrisRowsAndEpisodesEqualTheLaneLoops) {
  for (const int queue_size : {1, 4, 7}) {
    ExpectSamePlay(
        *device,
        DeviceLanesOf({.name = "tetris", .lanes = 150, .seed = 5, .queue_size = queue_size}), 10,
        100);
  }
  ExpectSamePlay(*device,
                 DeviceLanesOf({.name = "tetris", .lanes = 64, .seed = 6, .iid_pieces = true}), 10,
                 100);
  ExpectSamePlay(*device, DeviceLanesOf({.name = "tetris", .lanes = 64, .seed = 9, .rows = 7}), 10,
                 100);
}

TEST_F(DeviceLanesTest, PlacementRowsEqualWithIllegalChoicesAsNoopsToo) {
  for (const bool is_noop : {false, true}) {
    ExpectSamePlay(
        *device,
        DeviceLanesOf(
            {.name = "tetris-placement", .lanes = 150, .seed = 7, .illegal_is_noop = is_noop}),
        10, 100);
  }
  ExpectSamePlay(*device,
                 DeviceLanesOf({.name = "tetris-placement", .lanes = 64, .seed = 4, .rows = 10}),
                 10, 100);
  ExpectSamePlay(*device,
                 DeviceLanesOf({.name = "tetris-placement",
                                .lanes = 64,
                                .seed = 4,
                                .queue_size = 0,
                                .iid_pieces = true,
                                .rows = 6,
                                .spawn_above = true,
                                .reward = TetrisReward::kLines}),
                 10, 100);
}

TEST_F(DeviceLanesTest, CartPoleRowsEqualWhereSineAndCosineDo) {
  if (device->name().find("simulated") == std::string::npos) {
    GTEST_SKIP() << "a device's sine and cosine are its own";
  }
  ExpectSamePlay(*device, DeviceLanesOf({.name = "cartpole", .lanes = 200, .seed = 8}), 10, 100);
}

// Anywhere: a step's sine and cosine may differ in the last bit, which no pole's fall depends on.
TEST_F(DeviceLanesTest, CartPoleRowsAreNear) {
  const EnvConfig env = {.name = "cartpole", .lanes = 200, .seed = 8};
  DeviceSide side(*device, DeviceLanesOf(env), 61);
  CpuSide cpu(env);
  const std::vector<Token> tokens = MixedTokens(0, 4000);
  ASSERT_EQ(side.lanes.AddTokens(tokens, side.stream), tokens.size());
  cpu.tokens.tokens.assign(tokens.begin(), tokens.end());
  for (int row = 0; row < 60; ++row) side.Row();
  for (int row = 0; row < 60; ++row) cpu.Row();
  const RowSlots rows = side.rows.Download(side.stream);
  for (std::uint64_t row = 0; row < 60; ++row) {
    const RowView ours = rows.At(row), theirs = cpu.sink.Row(row);
    const auto* our_floats = reinterpret_cast<const float*>(ours.record);
    const auto* their_floats = reinterpret_cast<const float*>(theirs.record);
    for (std::size_t lane = 0; lane < 200; ++lane) {
      ASSERT_EQ(ours.flags[lane], theirs.flags[lane]) << row << ", lane " << lane;
      ASSERT_EQ(ours.reward[lane], theirs.reward[lane]) << row << ", lane " << lane;
      for (std::size_t i = 4 * lane; i < 4 * lane + 4; ++i) {
        ASSERT_NEAR(our_floats[i], their_floats[i], 1e-6F) << row << ", lane " << lane;
      }
    }
  }
}

// Lanes without tokens idle, ring slots of the queue are used again and again, and lanes that ended
// in one row take tokens in lane order.
TEST_F(DeviceLanesTest, AShortQueueLeavesLanesIdleAsTheLaneLoopDoes) {
  const EnvConfig env = {.name = "tetris", .lanes = 70, .seed = 9};
  DeviceLanesConfig config = DeviceLanesOf(env, 32);
  config.token_capacity = 7;
  DeviceSide device(*this->device, config, 8);
  CpuSide cpu(env);
  std::uint64_t next_token = 1, row = 0;
  std::size_t refused = 0, idle_cells = 0;
  for (int round = 0; round < 120; ++round) {
    const std::vector<Token> tokens = MixedTokens(next_token, 1 + round % 9);
    const std::size_t taken = device.lanes.AddTokens(tokens, device.stream);
    refused += tokens.size() - taken;
    cpu.tokens.tokens.insert(cpu.tokens.tokens.end(), tokens.begin(),
                             tokens.begin() + static_cast<std::ptrdiff_t>(taken));
    next_token += taken;
    for (int i = 0; i < 4; ++i, ++row) {
      device.Row();
      cpu.Row();
    }
    const RowSlots rows = device.rows.Download(device.stream);
    for (std::uint64_t at = row - 4; at < row; ++at) {
      ASSERT_TRUE(SameRow(rows.At(at), cpu.sink.Row(at), device.lanes.row_spec()));
    }
    const DeviceDrain drain = device.Drain();
    idle_cells += 70 - drain.playing_lanes;
    ExpectSameEpisodes(drain, cpu.recorder.episodes);
    cpu.recorder.episodes.clear();
  }
  EXPECT_GT(next_token, 300U);
  EXPECT_GT(idle_cells, 0U);
  EXPECT_GT(refused, 0U);
}

TEST_F(DeviceLanesTest, TokensBeyondTheQueueAreRefusedByCountUntilADrainTellsOfRoom) {
  DeviceLanesConfig config = DeviceLanesOf({.name = "cartpole", .lanes = 4});
  config.token_capacity = 10;
  DeviceSide side(*device, config, 4);
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(0, 6), side.stream), 6U);
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(6, 6), side.stream), 4U);
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(10, 1), side.stream), 0U);
  side.Row();
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(10, 1), side.stream), 0U) << "not told yet";
  const DeviceDrain drain = side.Drain();
  EXPECT_EQ(drain.tokens_left, 6U);
  EXPECT_EQ(drain.playing_lanes, 4U);
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(10, 9), side.stream), 4U);
  EXPECT_EQ(side.lanes.AddTokens({}, side.stream), 0U);
}

// Token k waits until fewer than three of those before it are undrained: no result is overwritten.
TEST_F(DeviceLanesTest, AFullListOfEpisodesKeepsLanesIdleAndLosesNone) {
  DeviceLanesConfig config = DeviceLanesOf({.name = "cartpole", .lanes = 3});
  config.episode_capacity = 3;
  DeviceSide side(*device, config, 4);
  std::vector<Token> tokens = MixedTokens(0, 40);
  for (Token& token : tokens) token.max_steps = 2;
  ASSERT_EQ(side.lanes.AddTokens(tokens, side.stream), 40U);
  std::vector<std::uint64_t> ended;
  for (int round = 0; round < 13; ++round) {
    for (int i = 0; i < 20; ++i) side.Row();
    const RowSlots rows = side.rows.Download(side.stream);
    const auto last = static_cast<std::uint64_t>(round * 20 + 19);
    for (int lane = 0; lane < 3; ++lane) {
      EXPECT_EQ(rows.At(last).flags[lane], kIsLast | kTruncated);
      EXPECT_EQ(rows.At(last).episode_id[lane], round);
    }
    const DeviceDrain drain = side.Drain();
    EXPECT_EQ(drain.playing_lanes, 0U);
    EXPECT_EQ(drain.tokens_left, 40U - 3 * (static_cast<unsigned>(round) + 1));
    EXPECT_EQ(drain.env_steps, 6U * (static_cast<unsigned>(round) + 1));
    for (const EndedEpisode& episode : drain.episodes) {
      EXPECT_EQ(episode.result.length_steps, 2U);
      EXPECT_EQ(episode.last_row, static_cast<std::uint64_t>(round * 20 + 2));
      ended.push_back(episode.result.token_id);
    }
  }
  std::vector<std::uint64_t> expected(39);
  for (std::uint64_t id = 0; id < expected.size(); ++id) expected[id] = id;
  EXPECT_EQ(ended, expected);
}

TEST_F(DeviceLanesTest, ADrainBringsWhatItHasRoomForAndLeavesTheRest) {
  DeviceLanesConfig config = DeviceLanesOf({.name = "cartpole", .lanes = 8});
  config.episode_capacity = 12;
  config.drain_episodes = 5;
  DeviceSide side(*device, config, 4);
  std::vector<Token> tokens = MixedTokens(0, 60);
  for (Token& token : tokens) token.max_steps = 2;
  ASSERT_EQ(side.lanes.AddTokens(tokens, side.stream), 60U);
  std::set<std::uint64_t> ended;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 9; ++i) side.Row();
    const DeviceDrain drain = side.Drain();
    EXPECT_EQ(drain.episodes.size(), 5U);
    EXPECT_EQ(drain.episodes_left + 5, std::min(12U, 60 - static_cast<unsigned>(ended.size())));
    for (const EndedEpisode& episode : drain.episodes) ended.insert(episode.result.token_id);
  }
  EXPECT_EQ(ended.size(), 60U);
  EXPECT_EQ(side.Drain().episodes.size(), 0U);
}

TEST_F(DeviceLanesTest, ACutTruncatesWhatPlaysAndGivesAllTokensBack) {
  const EnvConfig env = {.name = "tetris", .lanes = 40, .seed = 3};
  DeviceSide side(*device, DeviceLanesOf(env), 64);
  CpuSide cpu(env);
  std::uint64_t row = 0;
  for (const std::uint64_t first : {0U, 1000U}) {
    const std::vector<Token> tokens = MixedTokens(first, 38 + first / 10);
    ASSERT_EQ(side.lanes.AddTokens(tokens, side.stream), tokens.size());
    cpu.tokens.tokens.assign(tokens.begin(), tokens.end());
    for (int i = 0; i < 25; ++i) side.Row();
    for (int i = 0; i < 25; ++i) cpu.Row();
    const DeviceDrain before = side.Drain();
    const CutTokens cut = side.lanes.CutLanes(side.rows.slots, side.stream);
    EXPECT_TRUE(cut.has_row);
    cpu.tokens.state = TakeResult::kFenced;
    ASSERT_EQ(cpu.loop.RunOnce(), RunResult::kWaiting);
    ASSERT_EQ(cpu.sink.rows.size(), row + 26);
    const RowSlots rows = side.rows.Download(side.stream);
    for (const std::uint64_t end = row + 26; row < end; ++row) {
      ASSERT_TRUE(SameRow(rows.At(row), cpu.sink.Row(row), side.lanes.row_spec()));
    }
    EXPECT_EQ(rows.At(row - 1).header->policy_version, VersionOfRow(row - 2));
    // Every token has ended, or came back: those that played in the order of their lanes.
    const DeviceDrain after = side.Drain();
    ExpectSameEpisodes(
        after, {cpu.recorder.episodes.begin() + static_cast<std::ptrdiff_t>(before.episodes.size()),
                cpu.recorder.episodes.end()});
    EXPECT_EQ(cut.begun + after.episodes.size(), before.playing_lanes);
    EXPECT_EQ(cut.tokens.size() - cut.begun, before.tokens_left);
    EXPECT_EQ(after.playing_lanes, 0U);
    EXPECT_EQ(after.tokens_left, 0U);
    std::set<std::uint64_t> ids;
    for (const Token& token : cut.tokens) {
      EXPECT_EQ(token.attempt, token.id % 5);
      ids.insert(token.id);
    }
    for (const EpisodeResult& episode : cpu.recorder.episodes) ids.insert(episode.token_id);
    EXPECT_EQ(ids.size(), tokens.size());
    cpu.recorder.episodes.clear();
  }
}

TEST_F(DeviceLanesTest, ACutOfIdleLanesMakesNoRow) {
  DeviceSide side(*device, DeviceLanesOf({.name = "cartpole", .lanes = 5}), 4);
  EXPECT_FALSE(side.lanes.CutLanes(side.rows.slots, side.stream).has_row);
  ASSERT_EQ(side.lanes.AddTokens(MixedTokens(1, 2), side.stream), 2U);
  const CutTokens cut = side.lanes.CutLanes(side.rows.slots, side.stream);
  EXPECT_FALSE(cut.has_row);
  EXPECT_EQ(cut.begun, 0U);
  ASSERT_EQ(cut.tokens.size(), 2U);
  EXPECT_EQ(cut.tokens[1].id, 2U);
  side.Row();
  const DeviceDrain drain = side.Drain();
  EXPECT_EQ(drain.rows, 1U);
  EXPECT_EQ(drain.playing_lanes, 0U);
}

TEST_F(DeviceLanesTest, LanesWithoutTokensShowEmptyRows) {
  DeviceSide side(*device, DeviceLanesOf({.name = "tetris-placement", .lanes = 33}), 2);
  side.Row();
  const RowSlots rows = side.rows.Download(side.stream);
  const RowView row = rows.At(0);
  for (std::size_t lane = 0; lane < 33; ++lane) {
    EXPECT_EQ(row.flags[lane], kIsLast | kTruncated);
    EXPECT_EQ(row.mask[lane], 1U);
    EXPECT_EQ(row.episode_id[lane], 0);
    EXPECT_EQ(row.cont[lane], 1.0F);
  }
  const std::vector<std::byte> zeros(33 * 64);
  EXPECT_EQ(std::memcmp(row.record, zeros.data(), zeros.size()), 0);
}

// What Tetris lanes show of `config`, row for row, and how their episodes end.
struct Played {
  std::vector<std::byte> records;
  std::vector<std::uint64_t> tokens;
};

Played PlayOf(const cuda::Device& device, const DeviceLanesConfig& config, int rows_per_graph) {
  DeviceSide side(device, config, 61);
  std::vector<cuda::Graph> graph;
  if (rows_per_graph > 0) {
    cuda::Capture capture(side.stream);
    for (int row = 0; row < rows_per_graph; ++row) side.Row();
    graph.push_back(capture.End());
  }
  EXPECT_EQ(side.lanes.AddTokens(MixedTokens(0, 700), side.stream), 700U);
  for (int row = 0; row < 60; row += std::max(rows_per_graph, 1)) {
    if (rows_per_graph > 0) {
      side.stream.Launch(graph.front());
    } else {
      side.Row();
    }
  }
  const RowSlots rows = side.rows.Download(side.stream);
  Played played;
  const std::size_t row_bytes = std::size_t{rows.lanes} * rows.record_bytes;
  for (std::uint64_t row = 0; row < 60; ++row) {
    EXPECT_EQ(rows.At(row).header->row, row);
    const std::byte* record = rows.At(row).record;
    played.records.insert(played.records.end(), record, record + row_bytes);
  }
  for (const EndedEpisode& episode : side.Drain().episodes) {
    played.tokens.push_back(episode.result.token_id);
  }
  EXPECT_GT(played.tokens.size(), 100U);
  return played;
}

TEST_F(DeviceLanesTest, NothingDependsOnGridAndBlock) {
  const EnvConfig env = {.name = "tetris", .lanes = 300, .seed = 4};
  const Played one = PlayOf(*device, DeviceLanesOf(env, 1024), 0);
  for (const unsigned block_threads : {32U, 96U, 256U}) {
    const Played other = PlayOf(*device, DeviceLanesOf(env, block_threads), 0);
    EXPECT_EQ(other.records, one.records) << block_threads;
    EXPECT_EQ(other.tokens, one.tokens) << block_threads;
  }
}

TEST_F(DeviceLanesTest, RowsOfAGraphEqualRowsEnqueued) {
  const EnvConfig env = {.name = "tetris-placement", .lanes = 100, .seed = 4};
  const Played enqueued = PlayOf(*device, DeviceLanesOf(env), 0);
  for (const int rows : {1, 4, 12}) {
    const Played launched = PlayOf(*device, DeviceLanesOf(env), rows);
    EXPECT_EQ(launched.records, enqueued.records) << rows;
    EXPECT_EQ(launched.tokens, enqueued.tokens) << rows;
  }
}

TEST_F(DeviceLanesTest, StepsCopyNothingByWayOfTheHost) {
  DeviceLanesConfig config = DeviceLanesOf({.name = "tetris", .lanes = 50});
  config.record = kPacked2Record;
  DeviceSide side(*device, config, 8);
  ASSERT_EQ(side.lanes.AddTokens(MixedTokens(0, 1000), side.stream), 1000U);
  {
    const cuda::HostCopyGuard guard;
    for (int row = 0; row < 20; ++row) side.Row();
    EXPECT_THAT(guard.Violations(), ::testing::IsEmpty());
  }
  const cuda::HostCopyGuard guard;
  side.Row();
  side.lanes.EnqueueDrain(side.stream);
  const std::uint64_t list_bytes = 8192 * sizeof(EndedEpisode);
  const std::uint64_t bytes = guard.Seen()
                                  .Of(cuda::CopyDirection::kDeviceToHost, cuda::MemoryKind::kPinned,
                                      cuda::CopyPurpose::kAccount)
                                  .bytes;
  EXPECT_GT(bytes, list_bytes);
  EXPECT_LT(bytes, list_bytes + 256);
}

TEST_F(DeviceLanesTest, ADrainIsTakenOnceItHasPassed) {
  DeviceSide side(*device, DeviceLanesOf({.name = "cartpole", .lanes = 2}), 4);
  DeviceDrain drain;
  EXPECT_FALSE(side.lanes.TakeDrained(drain)) << "none was asked for";
  side.lanes.EnqueueDrain(side.stream);
  side.stream.Synchronize();
  EXPECT_TRUE(side.lanes.TakeDrained(drain));
  EXPECT_FALSE(side.lanes.TakeDrained(drain)) << "it was taken";
}

TEST_F(DeviceLanesTest, AnActionOutOfRangeIsReported) {
  DeviceSide side(*device, DeviceLanesOf({.name = "cartpole", .lanes = 2}), 4);
  ASSERT_EQ(side.lanes.AddTokens(MixedTokens(1, 2), side.stream), 2U);
  side.Row();
  SetBytes(side.rows.slots.action, 1, 4, side.stream);
  side.Row();
  side.lanes.EnqueueDrain(side.stream);
  side.stream.Synchronize();
  DeviceDrain drain;
  EXPECT_THROW(static_cast<void>(side.lanes.TakeDrained(drain)), Error);
}

TEST_F(DeviceLanesTest, WhatADeviceDoesNotHaveIsAUsageError) {
  const auto expect_refused = [&](const DeviceLanesConfig& config) {
    try {
      const DeviceLanes lanes(*device, config);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << error.what();
    }
  };
  DeviceLanesConfig config = DeviceLanesOf({.name = "pinball"});
  expect_refused(config);
  config.env.name = "cartpole";
  config.record = kPacked2Record;
  expect_refused(config);
  config.record = "";
  config.episode_capacity = 0;
  expect_refused(config);
  config = DeviceLanesOf({.name = "tetris", .view = "flat"});
  expect_refused(config);
  config = DeviceLanesOf({.name = "tetris"});
  config.token_capacity = 0;
  expect_refused(config);
}

}  // namespace
}  // namespace tetrion
