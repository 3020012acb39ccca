#include "lib/nn/scorer_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "lib/nn/categorical.h"

namespace tetrion {
namespace {

// Mixes the bits of an afterstate; equal rows have equal keys, unequal ones are compared. A sum of
// products that do not wait for each other.
std::uint64_t KeyOf(const float* after, std::int64_t floats) {
  std::uint64_t key = 0, factor = 0x9E3779B97F4A7C15u;
  std::int64_t i = 0;
  for (; i + 2 <= floats; i += 2, factor += 0xD1B54A32D192ED02u) {
    std::uint64_t two;
    std::memcpy(&two, after + i, sizeof(two));
    key += two * factor;
  }
  if (i < floats) key += std::uint64_t{std::bit_cast<std::uint32_t>(after[i])} * factor;
  return key;
}

// Stricter than ==: 0 and -0 differ, which costs a row and no more.
bool HaveEqualBits(const void* a, const void* b, std::size_t bytes) {
  return std::memcmp(a, b, bytes) == 0;
}

}  // namespace

void ScorerRows::Allocate(int max_states, int actions, int floats_of_action) {
  const auto cells = static_cast<std::size_t>(max_states) * static_cast<std::size_t>(actions);
  action_floats = floats_of_action;
  after.resize(cells * static_cast<std::size_t>(action_floats));
  first.resize(static_cast<std::size_t>(max_states) + 1);
  state.resize(cells);
  row_of.resize(cells);
}

void ScorerRows::Plan(const float* view, std::int64_t view_floats, const std::uint64_t* mask,
                      int states, int actions) {
  rows = 0;
  std::fill_n(row_of.data(), std::int64_t{states} * actions, -1);
  const std::uint64_t all = actions == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << actions) - 1;
  for (int s = 0; s < states; ++s) {
    first[static_cast<std::size_t>(s)] = rows;
    const std::uint64_t legal = mask == nullptr ? all : mask[s] & all;
    std::int32_t* row_of_state = row_of.data() + std::int64_t{s} * actions;
    if (action_floats == 16) {
      PlanState<16>(s, view + s * view_floats, legal, row_of_state);
    } else {
      PlanState<0>(s, view + s * view_floats, legal, row_of_state);
    }
  }
  first[static_cast<std::size_t>(states)] = rows;
}

// The rows of this state that are known are found by their keys: `place` has a place for twice as
// many as there can be, each the row's number in this state plus 1, or 0.
template <int kFloats>
void ScorerRows::PlanState(int s, const float* view, std::uint64_t legal,
                           std::int32_t* row_of_state) {
  constexpr unsigned kPlaces = 128;
  const std::int64_t floats = kFloats > 0 ? kFloats : action_floats;
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  std::uint8_t place[kPlaces] = {};
  std::uint64_t keys[64];
  const int begin = rows;
  for (; legal != 0; legal &= legal - 1) {
    const int a = std::countr_zero(legal);
    const float* source = view + a * floats;
    const std::uint64_t key = KeyOf(source, floats);
    const auto is_known_as = [&](int row) {
      return keys[row] == key &&
             HaveEqualBits(after.data() + (begin + row) * floats, source, bytes);
    };
    unsigned at = static_cast<unsigned>(key >> 57);
    while (place[at] != 0 && !is_known_as(place[at] - 1)) at = (at + 1) % kPlaces;
    if (place[at] == 0) {
      const int row = rows++ - begin;
      keys[row] = key;
      place[at] = static_cast<std::uint8_t>(row + 1);
      std::memcpy(after.data() + (begin + row) * floats, source, bytes);
      state[static_cast<std::size_t>(begin + row)] = s;
    }
    row_of_state[a] = begin + place[at] - 1;
  }
}

void ScorerRows::Scatter(const float* score, int cells, float* logits) const {
  for (int cell = 0; cell < cells; ++cell) {
    const std::int32_t row = row_of[static_cast<std::size_t>(cell)];
    logits[cell] = row < 0 ? kMaskedLogit : score[row];
  }
}

void ScorerRows::Gather(const float* grad_logits, int cells, float* grad_score) const {
  std::fill_n(grad_score, rows, 0.0F);
  for (int cell = 0; cell < cells; ++cell) {
    const std::int32_t row = row_of[static_cast<std::size_t>(cell)];
    if (row >= 0) grad_score[row] += grad_logits[cell];
  }
}

void KeptRows::Allocate(int max_states, int actions, int action_floats) {
  const auto cells = static_cast<std::size_t>(max_states) * static_cast<std::size_t>(actions);
  state.resize(cells);
  first.resize(static_cast<std::size_t>(max_states) + 1);
  after.resize(cells * static_cast<std::size_t>(action_floats));
}

void KeptRows::Choose(const ScorerRows& plan, int states, float* gradient) {
  const std::int64_t floats = plan.action_floats;
  float largest = 0.0F;
  for (int from = 0; from < plan.rows; ++from)
    largest = std::max(largest, std::abs(gradient[from]));
  rows = 0;
  for (int s = 0; s < states; ++s) {
    first[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(rows);
    const std::int32_t end = plan.first[static_cast<std::size_t>(s) + 1];
    float left_out = 0.0F;
    std::int64_t steepest = -1;
    for (std::int32_t from = plan.first[static_cast<std::size_t>(s)]; from < end; ++from) {
      if (std::abs(gradient[from]) < largest * kNegligible || gradient[from] == 0.0F) {
        left_out += gradient[from];
        continue;
      }
      gradient[rows] = gradient[from];
      if (steepest < 0 || std::abs(gradient[rows]) > std::abs(gradient[steepest])) steepest = rows;
      state[static_cast<std::size_t>(rows)] = s;
      std::copy_n(plan.after.data() + from * floats, floats, after.data() + rows * floats);
      ++rows;
    }
    if (steepest >= 0) gradient[steepest] += left_out;
  }
  first[static_cast<std::size_t>(states)] = static_cast<std::int32_t>(rows);
}

}  // namespace tetrion
