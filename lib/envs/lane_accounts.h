#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/core/check.h"
#include "lib/core/own_lines.h"
#include "lib/envs/lane_account.h"
#include "lib/envs/lane_runs.h"
#include "lib/envs/vec_env.h"

namespace tetrion {

// What an action did to each of `kMost` neighbours at most, as the row wants it.
template <std::size_t kMost>
struct LaneOutcomes {
  alignas(64) float reward[kMost];
  alignas(64) std::uint32_t lines[kMost];
  alignas(64) std::uint32_t terminated[kMost];  // 0 or 1
};

// The accounts of a VecEnv's lanes (token, length, return, lines, what comes next), whatever their
// game, a column for each number: those of neighbours are counted in vectors.
//
// Thread role: as of VecEnv, a lane belongs to one thread at a time. Nothing allocates after
// construction.
class LaneAccounts {
 public:
  enum class Phase : std::uint8_t {
    kIdle,     // has had no token
    kFresh,    // has a token, and the next row is the first of its episode
    kRunning,  // takes actions
    kEnded,    // its last row was the last of its episode
  };

  explicit LaneAccounts(std::size_t lanes)
      : token_(lanes),
        episode_id_(lanes, -1),
        phase_(lanes, Phase::kIdle),
        max_steps_(lanes),
        steps_(lanes),
        lines_(lanes),
        return_(lanes) {}

  std::size_t lanes() const { return token_.size(); }
  Phase phase(int lane) const { return phase_[At(lane)]; }
  const Token& token(int lane) const { return token_[At(lane)]; }
  std::int32_t episode_id(int lane) const { return episode_id_[At(lane)]; }
  EpisodeAccount account(int lane) const {
    const std::size_t at = At(lane);
    return {steps_[at], lines_[at], return_[at]};
  }

  // As new: the lane's first episode is 0.
  void Forget(int lane) {
    Put(lane, {}, {}, Phase::kIdle);
    episode_id_[At(lane)] = -1;
  }
  // The lane's next episode is the token's.
  void Give(int lane, const Token& token) {
    TETRION_CHECK(token.max_steps > 0, "a token must allow at least one step");
    Put(lane, token, {}, Phase::kFresh);
    episode_id_[At(lane)] += 1;
  }
  // The lane goes on in the middle or at the end of an episode.
  void Put(int lane, const Token& token, const EpisodeAccount& account, Phase phase) {
    const std::size_t at = At(lane);
    token_[at] = token;
    max_steps_[at] = token.max_steps;
    phase_[at] = phase;
    Set(at, account);
  }

  // Writes the columns of the reset observation of a lane that has been looked up.
  void Begin(int lane, const RowView& row) {
    CheckFresh(static_cast<std::size_t>(lane));
    WriteFirstRow(static_cast<std::size_t>(lane), row);
  }

  // Lists those of lanes first .. first + n - 1 whose episode begins; returns how many. The others
  // take actions.
  std::size_t ListBeginning(int first, std::size_t n, int* listed) const {
    const std::size_t at = At(first);
    TETRION_CHECK(n <= lanes() - at, "no such lane");
    std::size_t count = 0, i = 0;
    // Few begin: eight phases are looked at together, a byte of `others` for each.
    for (std::uint64_t others; i + sizeof(others) <= n; i += sizeof(others)) {
      std::memcpy(&others, phase_.data() + at + i, sizeof(others));
      others ^= 0x0101010101010101ULL * static_cast<std::uint64_t>(Phase::kRunning);
      while (others != 0) {
        const auto byte = static_cast<std::size_t>(std::countr_zero(others)) / 8;
        listed[count++] = first + static_cast<int>(i + byte);
        others &= ~(std::uint64_t{0xFF} << (8 * byte));
      }
    }
    for (; i < n; ++i) {
      listed[count] = first + static_cast<int>(i);
      count += phase_[at + i] != Phase::kRunning ? 1 : 0;
    }
    for (std::size_t k = 0; k < count; ++k) CheckFresh(At(listed[k]));
    return count;
  }

  // Counts an action of a lane that has been looked up, and writes the columns of the observation
  // that it led to.
  void Count(int lane, const LaneOutcome& outcome, const RowView& row) {
    const auto at = static_cast<std::size_t>(lane);
    EpisodeAccount account = {steps_[at], lines_[at], return_[at]};
    const std::uint8_t flags = CountStep(account, outcome, max_steps_[at]);
    Set(at, account);
    if ((flags & kIsLast) != 0) phase_[at] = Phase::kEnded;
    row.reward[at] = outcome.reward;
    row.flags[at] = flags;
    row.cont[at] = outcome.terminated ? 0.0F : 1.0F;
    row.episode_id[at] = episode_id_[at];
  }

  // Does Count for each of lanes first .. first + n - 1, n <= kMost, but Begin for those in
  // `beginning`, which were listed.
  template <std::size_t kMost>
  void CountRun(int first, std::size_t n, const LaneOutcomes<kMost>& outcomes,
                std::span<const int> beginning, const RowView& row) {
    const std::size_t at = At(first);
    CountColumns(n, outcomes.reward, outcomes.lines, steps_.data() + at, return_.data() + at,
                 lines_.data() + at);
    RewardColumns(n, outcomes.reward, outcomes.terminated, row.reward + at, row.cont + at);
    FlagColumns(n, outcomes.terminated, steps_.data() + at, max_steps_.data() + at, row.flags + at,
                phase_.data() + at);
    std::copy_n(episode_id_.data() + at, n, row.episode_id + at);
    for (const int lane : beginning) {
      Set(At(lane), {});
      WriteFirstRow(At(lane), row);
    }
  }

  // Each of `lanes` into its place of columns [M].
  void Show(std::span<const int> lanes, const VecEnv::EpisodeColumns& columns) const {
    ForEachRun(lanes, lanes.size(), [&](int first, std::size_t n) {
      const std::size_t at = At(first);
      RoundColumn(n, return_.data() + at, columns.episode_return + at);
      std::copy_n(steps_.data() + at, n, columns.length + at);
      std::copy_n(lines_.data() + at, n, columns.lines + at);
    });
  }

  std::size_t At(int lane) const {
    TETRION_CHECK(static_cast<std::size_t>(lane) < token_.size(), "no such lane");
    return static_cast<std::size_t>(lane);
  }

 private:
  void CheckFresh(std::size_t at) const {
    TETRION_CHECK(phase_[at] == Phase::kFresh,
                  "a lane without a token, or past is_last, was stepped");
  }
  void WriteFirstRow(std::size_t at, const RowView& row) {
    phase_[at] = Phase::kRunning;
    row.reward[at] = 0.0F;
    row.flags[at] = kIsFirst;
    row.cont[at] = 1.0F;
    row.episode_id[at] = episode_id_[at];
  }
  void Set(std::size_t at, const EpisodeAccount& account) {
    steps_[at] = account.steps;
    lines_[at] = account.lines;
    return_[at] = account.episode_return;
  }

  // Loops over columns [n] that share no memory.
  static void CountColumns(std::size_t n, const float* __restrict reward,
                           const std::uint32_t* __restrict lines, std::uint32_t* __restrict steps,
                           double* __restrict episode_return, std::uint32_t* __restrict all_lines) {
    for (std::size_t i = 0; i < n; ++i) {
      steps[i] += 1;
      episode_return[i] += reward[i];
      all_lines[i] += lines[i];
    }
  }
  static void RoundColumn(std::size_t n, const double* __restrict from, float* __restrict to) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
  }
  static void RewardColumns(std::size_t n, const float* __restrict reward,
                            const std::uint32_t* __restrict terminated,
                            float* __restrict row_reward, float* __restrict cont) {
    for (std::size_t i = 0; i < n; ++i) {
      row_reward[i] = reward[i];
      cont[i] = terminated[i] != 0 ? 0.0F : 1.0F;
    }
  }
  static void FlagColumns(std::size_t n, const std::uint32_t* __restrict terminated,
                          const std::uint32_t* __restrict steps,
                          const std::uint32_t* __restrict max_steps, std::uint8_t* __restrict flags,
                          Phase* __restrict phase) {
    for (std::size_t i = 0; i < n; ++i) {
      flags[i] = FlagsAfter(terminated[i] != 0, steps[i], max_steps[i]);
      phase[i] = flags[i] != 0 ? Phase::kEnded : Phase::kRunning;
    }
  }

  // [M] each. Environments of few lanes lie beside each other, each played by a thread of its own.
  OwnLinesVector<Token> token_;
  OwnLinesVector<std::int32_t> episode_id_;  // the first episode is 0
  OwnLinesVector<Phase> phase_;
  OwnLinesVector<std::uint32_t> max_steps_;  // of the tokens, beside each other
  OwnLinesVector<std::uint32_t> steps_, lines_;
  OwnLinesVector<double> return_;
};

}  // namespace tetrion
