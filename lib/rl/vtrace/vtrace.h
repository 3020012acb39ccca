#pragma once

#include <cstdint>

namespace tetrion {

// The caller chooses every one: what is left out is 0.
struct VtraceConstants {
  double discount;  // gamma
  double lambda;
  double rho_clip;
  double c_clip;
};

// Rows 0..T of B lanes, observation-aligned: reward and cont of row t+1 are what action_t led to.
struct VtraceInput {
  int steps = 0;                              // T
  int lanes = 0;                              // B
  const float* behaviour_log_prob = nullptr;  // [T+1, B] f32, mu
  const float* log_prob = nullptr;            // [T+1, B] f32, pi of the same actions
  const float* value = nullptr;               // [T+1, B] f32
  const float* reward = nullptr;              // [T+1, B] f32
  const float* cont = nullptr;                // [T+1, B] f32: 0 if terminated, else 1
  const std::uint8_t* flags = nullptr;        // [T+1, B] RowFlags
};

// All [T, B] f32, the caller's memory.
struct VtraceOutput {
  float* target = nullptr;      // v: what the value is trained towards
  float* advantage = nullptr;   // rho * (reward + gamma * v' - V)
  float* unweighted = nullptr;  // the same without rho, for a loss that weighs by the ratio itself
  float* rho = nullptr;         // clipped importance weight; 0 at is_last
};

struct VtraceSummary {
  double mean_rho = 0;          // over rows that are not is_last
  double clipped_fraction = 0;  // share of those whose ratio exceeds rho_clip
  std::int64_t valid = 0;       // how many they are
};

// V-trace targets and advantages (Espeholt et al., IMPALA, 2018, equation 1, with lambda): for t
// from T-1 down to 0,
//   delta_t = rho_t (r_{t+1} + gamma_{t+1} V_{t+1} - V_t)
//   v_t = V_t + delta_t + gamma_{t+1} c_t (v_{t+1} - V_{t+1}),  v_T = V_T
//   A_t = rho_t (r_{t+1} + gamma_{t+1} v_{t+1} - V_t)
// At is_last nothing was executed: rho_t = c_t = 0, so v_t = V_t and A_t = 0; truncation bootstraps
// from V of the last observation, termination from nothing. Pure, no allocation, any thread.
VtraceSummary ComputeVtrace(const VtraceConstants& constants, const VtraceInput& in,
                            const VtraceOutput& out);

// sign(x) * ln(1 + |x|).
float Symlog(float x);

}  // namespace tetrion
