// Prints which of the networks' kernels this processor runs, for ./tetrion doctor.
#include <cstdio>

#include "lib/nn/dense_kernels.h"

int main() {
  return std::printf("%s\n", tetrion::BestDenseKernels().name) < 0 ? 1 : 0;
}
