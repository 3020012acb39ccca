#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/rl/train_batch.h"

namespace tetrion {

// A group of b lanes of a batch, all columns contiguous as [T+1, b] and the records expanded into
// the network's view: what one optimiser step eats. Allocated once. Filled, then expanded: the
// lease need only last for the former, and several threads may share the latter.
struct Minibatch {
  Minibatch(const EnvSpec& env, int steps, int group_lanes);

  // Gathers lanes [first_lane, first_lane + b) of `batch`, whose T must be ours, all but the view.
  // Rewards pass through symlog when `symlog_reward`. Throws as CheckActions
  // (lib/rl/possible_actions.h).
  void Fill(const EnvSpec& env, const TrainBatch& batch, int first_lane, bool symlog_reward);

  // Writes the view of part `part` of `parts` of the cells. Threads may expand different parts at
  // once.
  void Expand(const EnvSpec& env, int part, int parts);

  int steps;                              // T
  int lanes;                              // b
  std::vector<std::byte> record;          // [T+1, b, record bytes]
  std::vector<float> view;                // [T+1, b, F] f32
  std::vector<std::uint64_t> mask;        // [T+1, b]; empty without masks
  std::vector<std::int32_t> action;       // [T+1, b]
  std::vector<float> behaviour_log_prob;  // [T+1, b]
  std::vector<float> reward;              // [T+1, b]
  std::vector<float> cont;                // [T+1, b]
  std::vector<std::uint8_t> flags;        // [T+1, b]
};

}  // namespace tetrion
