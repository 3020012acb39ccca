#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "lib/nn/init.h"
#include "lib/nn/network.h"
#include "lib/nn/thread_team.h"

// What the networks scorer and columns have in common: both score every distinct placement of a
// state with one small network and value the state with another, a chunk of states at a time.

namespace tetrion {

inline constexpr int kScorerValueTimes = 2;  // units of the value's network for one of the other
inline constexpr int kScorerChunk = 16;      // states: what is worked on stays in the cache

// Copies `row` [n] to every row of y [m, n].
inline void FillRows(const float* row, std::int64_t m, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(row, n, y + i * n);
}

// x [n, n] -> y, its transpose.
inline void TransposeSquare(const float* x, std::int64_t n, float* y) {
  for (std::int64_t r = 0; r < n; ++r) {
    for (std::int64_t c = 0; c < n; ++c) y[c * n + r] = x[r * n + c];
  }
}

// grad [count] *= slope.
inline void MultiplyBy(const float* slope, std::int64_t count, float* grad) {
  for (std::int64_t i = 0; i < count; ++i) grad[i] *= slope[i];
}

inline int ScorerChunks(int states) {
  return (states + kScorerChunk - 1) / kScorerChunk;
}

// Calls work(member, chunk, first state, states) for every chunk; which member takes which depends
// on nothing else.
template <typename Work>
void ForEachScorerChunk(ThreadTeam& team, int states, const Work& work) {
  const int chunks = ScorerChunks(states);
  const int members = team.size();
  const auto chunks_of = [&](int member) {
    for (int c = chunks * member / members; c < chunks * (member + 1) / members; ++c) {
      const int begin = c * kScorerChunk;
      work(member, c, begin, std::min(kScorerChunk, states - begin));
    }
  };
  team.Run(std::cref(chunks_of));  // by reference: a copy of it would be allocated
}

// Orthogonal weights [in, out], biases 0. The two heads are named by their offsets: logits start
// near 0, so that the first policy is nearly uniform.
inline void InitialiseScorer(const ParameterLayout& layout, std::size_t policy_head,
                             std::size_t value_head, std::uint64_t seed,
                             std::span<float> parameters) {
  constexpr double kPolicyHeadGain = 0.01;
  std::uint64_t stream = 0;
  for (const ParameterInfo& info : layout) {
    ++stream;
    if (info.shape.size() != 2) continue;
    const double gain = info.offset == policy_head  ? kPolicyHeadGain
                        : info.offset == value_head ? 1.0
                                                    : std::sqrt(2.0);
    OrthogonalInit(parameters.subspan(info.offset, info.size), info.shape[0], info.shape[1], gain,
                   seed, stream);
  }
}

}  // namespace tetrion
