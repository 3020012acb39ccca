#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/replay/latents.h"
#include "lib/rl/train_batch.h"

namespace tetrion {

// A whole batch of B lanes as a recurrent model trains on it: rows 1..T, and of row 0, the context,
// what is known of the state behind it. Time-major; allocated once.
//
//   row           0 (context)   1            2            ...   T
//   state before                latents_0    posterior_1        posterior_T-1
//   prev_action                 action_0     action_1           action_T-1     -1: none
//
// There is no previous action where an episode begins, nor at row 1 behind a context without
// latents: such a lane starts from no state at all.
//
// An episode has an action, and so two rows. A row at which one would both begin and end is of a
// lane that waits for an episode, or all that is left of one that was cut: it idles, and no loss
// counts it.
struct SequenceBatch {
  SequenceBatch(const EnvSpec& env, int steps, int lanes, const LatentSpec& latents);

  // Gathers the batch, whose T and B must be ours. Throws as CheckActions
  // (lib/rl/possible_actions.h).
  void Fill(const EnvSpec& env, const TrainBatch& batch);
  // Whether none of rows 1..T is an episode's.
  bool AllIdle() const;

  int steps;                // T
  int lanes;                // B
  std::vector<float> view;  // [T+1, B, F] f32; row 0 is the context's
  // Rows 1..T, [T, B] each.
  std::vector<std::int32_t> prev_action;
  std::vector<float> reward;
  std::vector<std::uint8_t> is_first, is_last, is_terminal, is_idle;  // 0 or 1
  // Behind the context row.
  std::vector<std::uint16_t> deter;  // [B, D] bf16
  std::vector<std::uint8_t> stoch;   // [B, S]
  std::vector<std::uint8_t> valid;   // [B] 0: the lane starts from no state

 private:
  std::vector<std::int32_t> row_action_;  // [T+1, B]
  std::vector<float> row_reward_;         // [T+1, B]
  std::vector<std::uint8_t> row_flags_;   // [T+1, B]
};

}  // namespace tetrion
