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

  // score [rows] -> logits [states, actions], kMaskedLogit where illegal; cells: states * actions.
  void Scatter(const float* score, int cells, float* logits) const;
  // The other way round, of slopes: those of equal afterstates are added up.
  void Gather(const float* grad_logits, int cells, float* grad_score) const;

  int rows = 0;
  int action_floats = 0;             // F
  std::vector<float> after;          // [rows, F] f32, the distinct afterstates
  std::vector<std::int32_t> first;   // [states + 1]: rows of state s are [first[s], first[s+1])
  std::vector<std::int32_t> state;   // [rows] the state of a row
  std::vector<std::int32_t> row_of;  // [states, actions]: row of an action, -1 where illegal

 private:
  // Adds the rows of state s, whose view and legal actions are given; row_of_state [actions] is its
  // part. kFloats is F where the compiler may know it, or 0.
  template <int kFloats>
  void PlanState(int s, const float* view, std::uint64_t legal, std::int32_t* row_of_state);
};

// The rows of a chunk that have a backward pass: those whose loss gradient is at least kNegligible
// of the chunk's largest. A policy that has learnt gives most placements next to none, and a few
// rows in ten carry the rest. What a state's other rows have is added to the steepest of those
// kept: slopes of a softmax add up to 0 in each state, and a gradient's larger part, which all
// placements of the state share, is gone only while they do.
struct KeptRows {
  static constexpr float kNegligible = 1e-4F;

  void Allocate(int max_states, int actions, int action_floats);

  // `gradient` is [plan.rows]; what is kept of it is moved to the front. A gradient that is not a
  // number is kept.
  void Choose(const ScorerRows& plan, int states, float* gradient);

  std::int64_t rows = 0;
  std::vector<std::int32_t> state;  // [rows] the state of a row
  std::vector<std::int32_t> first;  // [states + 1]: rows of state s are [first[s], first[s+1])
  std::vector<float> after;         // [rows, F] f32
};

}  // namespace tetrion
