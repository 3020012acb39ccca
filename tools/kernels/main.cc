// Prints which of the networks' kernels this processor runs, and which with --precision bf16, for
// ./tetrion doctor.
#include <cstdio>

#include "lib/nn/dense_kernels.h"

int main() {
  using tetrion::BestDenseKernels;
  const int said = std::printf("%s (--precision bf16: %s)\n", BestDenseKernels().name,
                               BestDenseKernels(tetrion::Precision::kBf16).name);
  return said < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
