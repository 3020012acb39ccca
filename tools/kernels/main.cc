// Prints which of the networks' kernels this processor runs, and which with --precision bf16, for
// ./tetrion doctor.
#include <cstdio>

#include "lib/nn/dense_kernels.h"
#include "lib/run/program.h"

int main(int argc, char** argv) {
  using tetrion::BestDenseKernels;
  return tetrion::GuardedMain(argc, argv, [](int, const char* const*) {
    std::printf("%s (--precision bf16: %s)\n", BestDenseKernels().name,
                BestDenseKernels(tetrion::Precision::kBf16).name);
    return 0;  // what could not be written is said at the program's end
  });
}
