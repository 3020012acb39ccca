#pragma once

#include <cstdint>

namespace tetrion {

// Lambda returns of DreamerV3. All columns are time-major; rewards sit on the row arrived at.

// Rows 0..H of N imagined sequences.
struct ImaginedRows {
  int horizon = 0;                // H
  int starts = 0;                 // N
  const float* reward = nullptr;  // [H+1, N]; row 0 is not read
  const float* cont = nullptr;    // [H+1, N] chance that the episode goes on, with the discount
  const float* value = nullptr;   // [H+1, N]; row 0 is not read
};
// R_k = r_{k+1} + c_{k+1} ((1 - lambda) v_{k+1} + lambda R_{k+1}) with R_H = v_H, into `returns`
// [H, N].
void ImaginedReturns(const ImaginedRows& rows, double lambda, float* returns);
// How much row k counts: c_0 ... c_k, into `weights` [H, N].
void ImaginedWeights(const ImaginedRows& rows, float* weights);

// T rows of B lanes as they were played.
struct ReplayedRows {
  int steps = 0;  // T
  int lanes = 0;  // B
  const float* reward = nullptr;
  const std::uint8_t* is_last = nullptr;
  const std::uint8_t* is_terminal = nullptr;
  const float* boot = nullptr;  // the return imagined from each row
};
// As above with `discount`, where an episode that is cut goes on with its bootstrap, and one that
// is terminal with nothing; the last row's return is its bootstrap. Into `returns` [T-1, B].
void ReplayedReturns(const ReplayedRows& rows, double discount, double lambda, float* returns);

}  // namespace tetrion
