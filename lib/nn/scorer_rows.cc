#include "lib/nn/scorer_rows.h"

#include <cstring>

namespace tetrion {
namespace {

// Mixes the 64 bytes of an afterstate; equal rows have equal keys, unequal ones are compared.
std::uint64_t KeyOf(const float* after) {
  std::uint64_t words[kAfterstateFloats / 2];
  std::memcpy(words, after, sizeof words);
  std::uint64_t key = 0;
  for (std::uint64_t word : words) key = (key ^ word) * 0x9E3779B97F4A7C15u + (key >> 29);
  return key;
}

// Stricter than ==: 0 and -0 differ, which costs a row and no more.
bool SameBytes(const void* a, const void* b) {
  return std::memcmp(a, b, kAfterstateFloats * sizeof(float)) == 0;
}

}  // namespace

void ScorerRows::Allocate(int max_states, int actions) {
  const auto cells = static_cast<std::size_t>(max_states) * static_cast<std::size_t>(actions);
  after.resize(cells * kAfterstateFloats);
  first.resize(static_cast<std::size_t>(max_states) + 1);
  row_of.resize(cells);
}

void ScorerRows::Plan(const float* view, std::int64_t view_floats, const std::uint64_t* mask,
                      int states, int actions) {
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
      const float* source = view + s * view_floats + a * kAfterstateFloats;
      const std::uint64_t key = KeyOf(source);
      int row = begin;
      for (; row < rows; ++row) {
        const float* known = after.data() + std::int64_t{row} * kAfterstateFloats;
        if (keys[row - begin] == key && SameBytes(known, source)) break;
      }
      if (row == rows) {
        keys[rows - begin] = key;
        std::memcpy(after.data() + std::int64_t{rows} * kAfterstateFloats, source,
                    kAfterstateFloats * sizeof(float));
        ++rows;
      }
      row_of_state[a] = row;
    }
  }
  first[static_cast<std::size_t>(states)] = rows;
}

}  // namespace tetrion
