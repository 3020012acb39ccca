#pragma once

// One row of all lanes, a thread a lane: what LaneLoop::StepPlaying, LaneEnv and LaneBook do on the
// CPU. Integers but for rewards, which are exact, and for CartPole's doubles (compiled without
// fused multiply-adds). The order in which lanes take tokens is that of the lanes: a lane's place
// is the count of lanes before it that need one, from the counts of blocks that the row before
// left, and from ballots inside the block. Atomics count, but order nothing.

#include "lib/cuda/kernel.h"
#include "lib/envs/cuda/lane_spans.h"
#include "lib/envs/lane_account.h"
#include "lib/frame/row_slots.h"

namespace tetrion {

inline constexpr std::uint64_t kNoToken = ~std::uint64_t{0};

// The sum over the block's threads, to each of them. Once a kernel.
__device__ inline std::uint32_t BlockSum(std::uint32_t value) {
  TETRION_SHARED(std::uint32_t, sums, 32);
  for (int across = warpSize / 2; across > 0; across /= 2) {
    value += __shfl_xor_sync(~0U, value, across);
  }
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = value;
  __syncthreads();
  std::uint32_t sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warpSize; ++warp) sum += sums[warp];
  return sum;
}

// How many threads of the block before this one say `counts`. Once a kernel.
__device__ inline std::uint32_t RankInBlock(bool counts) {
  TETRION_SHARED(std::uint32_t, sums, 32);
  const unsigned warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  const std::uint32_t votes = __ballot_sync(~0U, counts);
  if (lane == 0) sums[warp] = static_cast<std::uint32_t>(__popc(votes));
  __syncthreads();
  auto rank = static_cast<std::uint32_t>(__popc(votes & ((1U << lane) - 1)));
  for (unsigned before = 0; before < warp; ++before) rank += sums[before];
  return rank;
}

// The number of the token that the lane takes, or kNoToken. All threads of the block call it; the
// first block notes for Advance how many lanes begin and how many take a step.
__device__ inline std::uint64_t TakeToken(const LaneSpans& lanes, bool needs, StepKind kind) {
  LaneTotals& totals = lanes.totals[0];
  const std::uint64_t counts = totals.row % kNeedRows * gridDim.x;
  const bool is_first = blockIdx.x == 0, block_needs = lanes.needs[counts + blockIdx.x] != 0;
  if (!is_first && !block_needs) return kNoToken;
  std::uint32_t sum = 0;  // of the blocks before this one; the first block's is of all
  for (unsigned block = threadIdx.x; block < (is_first ? gridDim.x : blockIdx.x);
       block += blockDim.x) {
    sum += lanes.needs[counts + block];
  }
  sum = BlockSum(sum);
  const std::uint64_t room = totals.drained + totals.given_back + lanes.ended.size();
  const std::uint64_t end = kind == StepKind::kCut ? totals.begun
                            : totals.added < room  ? totals.added
                                                   : room;
  if (is_first && threadIdx.x == 0) {
    totals.begins_of_row = sum < end - totals.begun ? sum : end - totals.begun;
    totals.steps_of_row = lanes.phase.size() - sum;
  }
  if (!block_needs) return kNoToken;
  const std::uint64_t token = totals.begun + (is_first ? 0 : sum) + RankInBlock(needs);
  return needs && token < end ? token : kNoToken;
}

// The count of lanes that need a token in the next row, by block.
__device__ inline void NoteNeed(const LaneSpans& lanes, bool needs) {
  const std::uint64_t row = lanes.totals[0].row;
  if (needs) atomicAdd(&lanes.needs[(row + 1) % kNeedRows * gridDim.x + blockIdx.x], 1U);
  if (threadIdx.x == 0) lanes.needs[(row + 2) % kNeedRows * gridDim.x + blockIdx.x] = 0;
}

// Columns of one lane in the row being made.
struct LaneColumns {
  float reward = 0.0F;
  std::uint8_t flags = kIsLast | kTruncated;  // of a lane without an episode
  float cont = 1.0F;
};

template <typename Game>
__device__ LaneColumns BeginEpisode(const LaneSpans& lanes, Game& game, std::size_t lane,
                                    const Token& token) {
  lanes.phase[lane] = LanePhase::kPlaying;
  lanes.token_ids[lane] = token.id;
  lanes.attempts[lane] = token.attempt;
  lanes.max_steps[lane] = token.max_steps;
  lanes.steps[lane] = 0;
  lanes.lines[lane] = 0;
  lanes.returns[lane] = 0.0;
  lanes.episode_ids[lane] += 1;
  game.Begin(lane, token.id);
  return {0.0F, kIsFirst, 1.0F};
}

// Puts the lane's episode, which ends in the row being made, on the list. There is room for it.
__device__ inline void NoteEnd(const LaneSpans& lanes, std::size_t lane,
                               const EpisodeAccount& account, std::uint32_t policy_version) {
  const std::uint64_t number = atomicAdd(&lanes.totals[0].ended, 1ULL);
  EndedEpisode& episode = lanes.ended[number % lanes.ended.size()];
  episode.result.token_id = lanes.token_ids[lane];
  episode.result.attempt = lanes.attempts[lane];
  episode.result.lane = static_cast<std::uint32_t>(lane);
  episode.result.length_steps = account.steps;
  episode.result.lines = account.lines;
  episode.result.episode_return = static_cast<float>(account.episode_return);
  episode.result.policy_version = policy_version;
  episode.last_row = lanes.totals[0].row;
}

// One action. `before` is the row before.
template <typename Game>
__device__ LaneColumns PlayAction(const LaneSpans& lanes, Game& game, std::size_t lane,
                                  const RowView& before) {
  int action = before.action[lane];
  if (action < 0 || action >= Game::kActions) {
    atomicAdd(&lanes.totals[0].bad_actions, 1ULL);
    action = 0;
  }
  const LaneOutcome outcome = game.Play(lane, lanes.token_ids[lane], action);
  EpisodeAccount account = {lanes.steps[lane], lanes.lines[lane], lanes.returns[lane]};
  const std::uint8_t flags = CountStep(account, outcome, lanes.max_steps[lane]);
  lanes.steps[lane] = account.steps;
  lanes.lines[lane] = account.lines;
  lanes.returns[lane] = account.episode_return;
  if ((flags & kIsLast) != 0) {
    lanes.phase[lane] = LanePhase::kEnded;
    NoteEnd(lanes, lane, account, before.header->policy_version);
  }
  return {outcome.reward, flags, outcome.terminated ? 0.0F : 1.0F};
}

// The rest of a cut: the lane's episode ends without a result, and no action follows.
__device__ inline void CutLane(const LaneSpans& lanes, std::size_t lane, const RowView& view,
                               LaneColumns& columns) {
  Token& cut = lanes.cut[lane];
  cut = {};
  view.action[lane] = 0;
  view.log_prob[lane] = 0.0F;
  if (lanes.phase[lane] != LanePhase::kPlaying) return;
  cut.id = lanes.token_ids[lane];
  cut.attempt = lanes.attempts[lane];
  cut.max_steps = lanes.max_steps[lane];
  columns.flags |= kIsLast | kTruncated;
  lanes.phase[lane] = LanePhase::kEnded;
}

// `shows_state`: the record is the game's state; else another kernel draws it.
template <typename Game>
__global__ void StepLanes(LaneSpans lanes, RowSlots slots, Game game, StepKind kind,
                          bool shows_state) {
  const std::size_t lane = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const bool exists = lane < lanes.phase.size();
  const bool played = exists && lanes.phase[lane] == LanePhase::kPlaying;
  const std::uint64_t token = TakeToken(lanes, exists && !played, kind);
  const std::uint64_t row = lanes.totals[0].row;
  const RowView view = slots.At(row), before = slots.At(row - 1);
  if (lane == 0) {
    view.header->row = row;
    view.header->reserved = 0;
    if (kind == StepKind::kCut) view.header->policy_version = before.header->policy_version;
  }
  LaneColumns columns;
  if (played) {
    columns = PlayAction(lanes, game, lane, before);
  } else if (token != kNoToken) {
    columns = BeginEpisode(lanes, game, lane, lanes.tokens[token % lanes.tokens.size()]);
  } else if (exists) {
    lanes.phase[lane] = LanePhase::kIdle;
  }
  if (exists && kind == StepKind::kCut) CutLane(lanes, lane, view, columns);
  NoteNeed(lanes, exists && lanes.phase[lane] != LanePhase::kPlaying);
  if (!exists) return;
  const bool is_idle = lanes.phase[lane] == LanePhase::kIdle;
  if (shows_state) game.Show(lane, is_idle, view.record);
  if (view.mask != nullptr) view.mask[lane] = is_idle ? 1 : game.Mask(lane);
  view.reward[lane] = columns.reward;
  view.flags[lane] = columns.flags;
  view.cont[lane] = columns.cont;
  view.episode_id[lane] = lanes.episode_ids[lane] < 0 ? 0 : lanes.episode_ids[lane];
}

}  // namespace tetrion
