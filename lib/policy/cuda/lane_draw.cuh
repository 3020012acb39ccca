#pragma once

#include "lib/core/philox.h"
#include "lib/cuda/kernel.h"
#include "lib/policy/cuda/decided_row.h"
#include "lib/policy/uniform_choice.h"

// What the kernels that decide a row share.

namespace tetrion {

__device__ inline UniformChoice ChooseUniformly(const DecidedRow& row, const RowView& view,
                                                std::size_t lane, std::uint32_t word) {
  return view.mask != nullptr ? UniformOfMask(view.mask[lane] & row.all_mask, word)
                              : UniformOfAll(static_cast<std::uint32_t>(row.actions), word);
}

__device__ inline PhiloxBlock DrawOf(const DecidedRow& row, std::size_t lane) {
  return PhiloxDraw(row.seed, row.token_ids[lane], row.steps[lane], PhiloxPurpose::kActions);
}

}  // namespace tetrion
