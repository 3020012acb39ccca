#include "lib/nn/scorer_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tetrion {
namespace {

// Mixes the bytes of an afterstate; equal rows have equal keys, unequal ones are compared.
std::uint64_t KeyOf(const float* after, std::size_t bytes) {
  std::uint64_t key = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof(key)) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(after) + at,
                std::min(sizeof(word), bytes - at));
    key = (key ^ word) * 0x9E3779B97F4A7C15u + (key >> 29);
  }
  return key;
}

}  // namespace

void ScorerRows::Allocate(int max_states, int actions, int floats_of_action) {
  const auto cells = static_cast<std::size_t>(max_states) * static_cast<std::size_t>(actions);
  action_floats = floats_of_action;
  after.resize(cells * static_cast<std::size_t>(action_floats));
  first.resize(static_cast<std::size_t>(max_states) + 1);
  row_of.resize(cells);
}

void ScorerRows::Plan(const float* view, std::int64_t view_floats, const std::uint64_t* mask,
                      int states, int actions) {
  const std::int64_t floats = action_floats;
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  std::uint64_t keys[64];
  rows = 0;
  for (int s = 0; s < states; ++s) {
    const int begin = rows;
    first[static_cast<std::size_t>(s)] = begin;
    const std::uint64_t legal = mask == nullptr ? ~std::uint64_t{0} : mask[s];
    std::int32_t* row_of_state = row_of.data() + std::int64_t{s} * actions;
    for (int a = 0; a < actions; ++a) {
      row_of_state[a] = -1;
      if ((legal >> a & 1) == 0) continue;
      const float* source = view + s * view_floats + a * floats;
      const std::uint64_t key = KeyOf(source, bytes);
      int row = begin;
      for (; row < rows; ++row) {
        // Stricter than ==: 0 and -0 differ, which costs a row and no more.
        const float* known = after.data() + row * floats;
        if (keys[row - begin] == key && std::memcmp(known, source, bytes) == 0) break;
      }
      if (row == rows) {
        keys[rows - begin] = key;
        std::memcpy(after.data() + rows * floats, source, bytes);
        ++rows;
      }
      row_of_state[a] = row;
    }
  }
  first[static_cast<std::size_t>(states)] = rows;
}

}  // namespace tetrion
