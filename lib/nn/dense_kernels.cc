// Baseline kernels (the build's own instruction set: 8-float vectors) and the choice between
// tables.
#define TETRION_LANES 8
#define TETRION_VECTORS 2
#define TETRION_KERNELS_NAME "baseline"
#include "lib/nn/dense_kernels_impl.h"

namespace tetrion {

// Defined in dense_kernels_avx512.cc, which is compiled for x86-64-v4.
const DenseKernels& Avx512DenseKernels();

const DenseKernels& BaselineDenseKernels() {
  return kTable;
}

const DenseKernels& BestDenseKernels() {
  static const bool has_avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd");
  return has_avx512 ? Avx512DenseKernels() : kTable;
}

}  // namespace tetrion
