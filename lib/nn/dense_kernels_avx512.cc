// AVX-512 kernels: this file alone is compiled with -march=x86-64-v4 and reached only through
// BestDenseKernels, which asks the processor first.
#define TETRION_LANES 16
#define TETRION_VECTORS 4
#define TETRION_ACCUMULATORS 24
#define TETRION_KERNELS_NAME "avx512"
#include "lib/nn/dense_kernels_impl.h"

namespace tetrion {

const DenseKernels& Avx512DenseKernels();
const DenseKernels& Avx512DenseKernels() {
  return kTable;
}

}  // namespace tetrion
