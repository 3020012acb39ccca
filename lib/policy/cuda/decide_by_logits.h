#pragma once

#include "lib/cuda/device.h"
#include "lib/policy/cuda/decided_row.h"
#include "lib/policy/cuda/not_finite_rows.h"

namespace tetrion {

// Enqueues the actions of a row, a thread a lane, as the CPU's policies do: from logits
// [A, M] f32 a draw, or with `greedy` the most probable action. May be captured.
//
// Numeric policy: as lib/nn/categorical.h, with the device's exp and log; so a draw may fall on the
// other side of a boundary that is within their error.
void LaunchDecideByLogits(const DecidedRow& row, cuda::DeviceSpan<const float> logits, bool greedy,
                          NotFiniteCount* not_finite, cuda::Stream& stream);

}  // namespace tetrion
