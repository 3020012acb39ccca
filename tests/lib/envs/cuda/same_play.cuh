#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/lib/envs/cuda/lanes_driver.cuh"

// Device lanes against the lane loop: the same tokens and actions must give the same rows,
// episodes and counters.

namespace tetrion::testing {

// A third are truncated soon.
inline std::vector<Token> MixedTokens(std::uint64_t first, std::uint64_t count) {
  std::vector<Token> tokens;
  for (std::uint64_t id = first; id < first + count; ++id) {
    const bool is_short = id % 3 == 0;
    tokens.push_back({.id = id,
                      .attempt = static_cast<std::uint32_t>(id % 5),
                      .max_steps = is_short ? 1 + static_cast<std::uint32_t>(id % 50) : 1U << 30});
  }
  return tokens;
}

// With more room than a test's rounds need.
inline DeviceLanesConfig DeviceLanesOf(const EnvConfig& env, unsigned block_threads = 64) {
  return {
      .env = env, .token_capacity = 8192, .episode_capacity = 8192, .block_threads = block_threads};
}

inline void ExpectSameEpisodes(const DeviceDrain& drain,
                               const std::vector<EpisodeResult>& episodes) {
  ASSERT_EQ(drain.episodes.size(), episodes.size());
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const EpisodeResult &ours = drain.episodes[i].result, &theirs = episodes[i];
    ASSERT_EQ(ours.token_id, theirs.token_id) << i;
    ASSERT_EQ(ours.attempt, theirs.attempt) << i;
    ASSERT_EQ(ours.lane, theirs.lane) << i;
    ASSERT_EQ(ours.length_steps, theirs.length_steps) << i;
    ASSERT_EQ(ours.lines, theirs.lines) << i;
    ASSERT_EQ(ours.episode_return, theirs.episode_return) << i;
    ASSERT_EQ(ours.policy_version, VersionOfRow(drain.episodes[i].last_row - 1)) << i;
  }
}

// One round: rows [first, first + count) of both sides, then a drain. Returns how many episodes
// ended.
inline std::size_t PlayRound(DeviceSide& device, CpuSide& cpu, std::uint64_t first,
                             std::uint64_t count) {
  for (std::uint64_t row = 0; row < count; ++row) device.Row();
  for (std::uint64_t row = 0; row < count; ++row) cpu.Row();
  const RowSlots rows = device.rows.Download(device.stream);
  for (std::uint64_t row = first; row < first + count; ++row) {
    EXPECT_TRUE(SameRow(rows.At(row), cpu.sink.Row(row), device.lanes.row_spec()));
    cpu.sink.rows[row] = {};
    if (::testing::Test::HasFailure()) return 0;
  }
  const DeviceDrain drain = device.Drain();
  ExpectSameEpisodes(drain, cpu.recorder.episodes);
  EXPECT_EQ(drain.tokens_left, cpu.tokens.tokens.size());
  EXPECT_EQ(drain.env_steps, cpu.loop.counters().env_steps.load());
  EXPECT_EQ(drain.rows, cpu.loop.counters().rows.load());
  cpu.recorder.episodes.clear();
  return drain.episodes.size();
}

// `rounds` rounds of `count` rows, with as many tokens as the device has room for before each.
inline void ExpectSamePlay(const cuda::Device& on, const DeviceLanesConfig& config, int rounds,
                           std::uint64_t count) {
  DeviceSide device(on, config, count + 1);
  CpuSide cpu(config.env);
  std::uint64_t next_token = 100;
  std::size_t ended = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Token> tokens = MixedTokens(next_token, config.token_capacity);
    const std::size_t taken = device.lanes.AddTokens(tokens, device.stream);
    cpu.tokens.tokens.insert(cpu.tokens.tokens.end(), tokens.begin(),
                             tokens.begin() + static_cast<std::ptrdiff_t>(taken));
    next_token += taken;
    ended += PlayRound(device, cpu, static_cast<std::uint64_t>(round) * count, count);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ended, 0U);
}

}  // namespace tetrion::testing
