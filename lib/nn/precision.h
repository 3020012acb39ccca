#pragma once

#include <string_view>

namespace tetrion {

// What the factors of the hidden layers' products are rounded to in networks scorer and columns,
// where layer and processor gain by it: layers of 64 units and more, and AVX-512 BF16. Weights,
// sums and gradients of weights stay f32, and so do numbers of a view. How far products are off:
// DenseKernels::packed_error.
enum class Precision { kF32, kBf16 };

// Of a run's setting `precision`, which allows no other names.
inline Precision PrecisionOf(std::string_view name) {
  return name == "bf16" ? Precision::kBf16 : Precision::kF32;
}

}  // namespace tetrion
