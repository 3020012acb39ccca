#include "lib/envs/cuda/step_kernels.cuh"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceSpan;

constexpr double kWhereFloatsEnd = 16'777'216.0;  // 2^24: the next float is 2 more
constexpr std::uint32_t kActionsLeft = 10;

struct RewardsOfOne {
  static constexpr int kActions = 1;
  __device__ LaneOutcome Play(std::size_t, std::uint64_t, int) { return {1.0F, 0, false}; }
};

// One lane, far into an episode, takes the last actions of it.
__global__ void EndLongEpisode(DeviceSpan<LaneTotals> totals, DeviceSpan<EndedEpisode> ended) {
  LanePhase phase = LanePhase::kPlaying;
  std::uint64_t token_id = 7;
  std::uint32_t attempt = 0, max_steps = kActionsLeft, steps = 0, lines = 0;
  std::remove_reference_t<decltype(LaneSpans().returns[0])> sum = kWhereFloatsEnd;
  LaneSpans lanes;
  lanes.totals = totals;
  lanes.ended = ended;
  lanes.phase = {&phase, 1};
  lanes.token_ids = {&token_id, 1};
  lanes.attempts = {&attempt, 1};
  lanes.max_steps = {&max_steps, 1};
  lanes.steps = {&steps, 1};
  lanes.lines = {&lines, 1};
  lanes.returns = {&sum, 1};
  std::int32_t action = 0;
  RowHeader header = {};
  RowView before;
  before.header = &header;
  before.action = &action;
  RewardsOfOne game;
  for (std::uint32_t i = 0; i < kActionsLeft; ++i) PlayAction(lanes, game, 0, before);
}

class StepKernelsTest : public cuda::DeviceFixture {};

TEST_F(StepKernelsTest, ALongEpisodesReturnGrowsByEveryReward) {
  const DeviceBuffer totals = Upload(std::vector<LaneTotals>(1));
  const DeviceBuffer ended = Upload(std::vector<EndedEpisode>(1));
  Launch(*stream, EndLongEpisode, 1, 1, 0, DeviceSpan<LaneTotals>(totals.data<LaneTotals>(), 1),
         DeviceSpan<EndedEpisode>(ended.data<EndedEpisode>(), 1));
  const EpisodeResult result = Download<EndedEpisode>(ended)[0].result;
  EXPECT_EQ(result.token_id, 7U);
  EXPECT_EQ(result.length_steps, kActionsLeft);
  EXPECT_EQ(result.episode_return, kWhereFloatsEnd + 10);
}

}  // namespace
}  // namespace tetrion
