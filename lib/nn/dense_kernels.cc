// Baseline kernels (the build's own instruction set: 8-float vectors) and the choice between
// tables.
#define TETRION_LANES 8
#define TETRION_VECTORS 2
#define TETRION_ACCUMULATORS 10
#define TETRION_KERNELS_NAME "baseline"
#include <cstdlib>
#include <string_view>

#include "lib/nn/dense_kernels_impl.h"

namespace tetrion {
namespace {

// True unless the tensor library's variable asks for an older processor's code.
bool AskedForAvx512() {
  const char* capability = std::getenv("ATEN_CPU_CAPABILITY");
  return capability == nullptr || std::string_view(capability) == "avx512";
}

}  // namespace

// Defined in dense_kernels_avx512.cc, which is compiled for x86-64-v4.
const DenseKernels& Avx512DenseKernels();

const DenseKernels& BaselineDenseKernels() {
  return kTable;
}

const DenseKernels& BestDenseKernels() {
  static const bool use_avx512 =
      AskedForAvx512() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd");
  return use_avx512 ? Avx512DenseKernels() : kTable;
}

}  // namespace tetrion
