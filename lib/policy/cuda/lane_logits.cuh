#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/cuda/kernel.h"
#include "lib/nn/categorical.h"
#include "lib/policy/uniform_choice.h"

namespace tetrion {

// Logits of one lane of [A, M]; kMaskedLogit where the action is illegal.
struct LaneLogits {
  const float* first;
  std::size_t lanes;   // M
  std::uint64_t mask;  // all ones without masks
  TETRION_HOST_DEVICE bool Legal(int a) const {
    return a >= kMostMaskedActions || (mask >> a & 1) != 0;
  }
  TETRION_HOST_DEVICE float operator[](int a) const {
    return Legal(a) ? first[static_cast<std::size_t>(a) * lanes] : kMaskedLogit;
  }
};

}  // namespace tetrion
