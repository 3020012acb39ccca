#pragma once

#include <cstdint>
#include <vector>

namespace tetrion {

// The rows of a chunk that the scorer has to compute: one for each distinct legal afterstate.
struct ScorerRows {
  // Allocates for `max_states` states of `actions` actions, `action_floats` floats each.
  void Allocate(int max_states, int actions, int action_floats);

  // Fills everything from view rows `view_floats` apart. Without masks (null) every action is
  // legal.
  void Plan(const float* view, std::int64_t view_floats, const std::uint64_t* mask, int states,
            int actions);

  int rows = 0;
  int action_floats = 0;             // F
  std::vector<float> after;          // [rows, F] f32, the distinct afterstates
  std::vector<std::int32_t> first;   // [states + 1]: rows of state s are [first[s], first[s+1])
  std::vector<std::int32_t> row_of;  // [states, actions]: row of an action, -1 where illegal
};

}  // namespace tetrion
