#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/policy/policy.h"

namespace tetrion {

// Plays the tokens 0..episodes-1, each exactly once and to its end, on as many lanes as the
// environment has: a lane whose episode ended takes the next token, and idles when there is none.
// So short episodes are not preferred, whatever the lane count.
//
// One thread; environment and policy are the caller's. Allocates at construction, and at times
// where the episodes are endless.
class EpisodePlayer {
 public:
  static constexpr int kEndless = std::numeric_limits<int>::max();  // as a number of episodes

  // The policy is shown the first `policy_record_bytes` of each record (0: all of it): a colour
  // record begins with the compact one that a policy was trained on.
  EpisodePlayer(VecEnv& env, Policy& policy, int episodes, std::uint32_t max_steps,
                std::uint32_t policy_record_bytes = 0);

  // One row: every active lane sees its next observation and chooses. False when all episodes have
  // ended. Throws Error(kConfig) when the policy's output is not finite.
  bool Step();

  // Indexed by token, as many as were begun; an entry is valid when its episode has ended.
  const std::vector<EpisodeResult>& results() const { return results_; }
  int finished() const { return finished_; }
  // Those of them that ended by themselves; the others were cut at max_steps.
  int deaths() const { return deaths_; }
  // The episodes that have not ended, as far as they have come.
  std::vector<EpisodeResult> Unfinished() const;
  // The row the last Step wrote, for drawing. [M]
  const RowView& row() const { return row_; }
  // What the last Step has `lane` do next; nothing where its episode has ended.
  std::int32_t action(int lane) const { return actions_[static_cast<std::size_t>(lane)]; }

 private:
  // Gives `lane` the next token; false when none is left.
  bool TakeToken(int lane);
  void Choose(const std::vector<int>& lanes);

  VecEnv& env_;
  Policy& policy_;
  const int episodes_;
  const std::uint32_t max_steps_;
  const std::size_t policy_record_bytes_;
  const RowLayout layout_;
  std::vector<std::byte> row_bytes_;
  RowView row_;
  std::vector<EpisodeResult> results_;
  int next_token_ = 0;
  int finished_ = 0;
  int deaths_ = 0;
  std::vector<int> active_;            // lanes that step, ascending
  std::vector<int> choosing_;          // those of them that need an action
  std::vector<std::int32_t> actions_;  // [M]
  // What the policy sees of the choosing lanes, packed.
  std::vector<std::byte> records_;
  std::vector<std::uint64_t> masks_, tokens_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> lane_ids_, steps_;
  std::vector<std::int32_t> chosen_;
  std::vector<float> log_probs_;
};

}  // namespace tetrion
