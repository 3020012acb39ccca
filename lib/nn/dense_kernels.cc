// Baseline kernels (the build's own instruction set: 8-float vectors) and the choice between
// tables.
#define TETRION_LANES 8
#define TETRION_VECTORS 2
#define TETRION_ACCUMULATORS 12
#define TETRION_KERNELS_NAME "baseline"
#include <cstdlib>
#include <string_view>

#include "lib/core/avx512.h"
#include "lib/nn/dense_kernels_impl.h"

namespace tetrion {
namespace {

// Whether the tensor library's variable lets its code for `capability` run.
bool Asked(std::string_view capability) {
  const char* asked = std::getenv("ATEN_CPU_CAPABILITY");
  return asked == nullptr || asked == capability;
}

}  // namespace

// Defined in dense_kernels_avx512.cc, which is compiled for x86-64-v4, and in dense_kernels_bf16.cc
// and dense_kernels_amx.cc: null where this machine has no such instructions.
const DenseKernels& Avx512DenseKernels();
const DenseKernels* Bf16DenseKernels();
const DenseKernels* AmxDenseKernels();

namespace {

const DenseKernels& ChooseKernels(Precision precision) {
  if (!HasAvx512() || !Asked("avx512")) return kTable;
  const bool any = std::getenv("ATEN_CPU_CAPABILITY") == nullptr;
  if (any && AmxDenseKernels() != nullptr) return *AmxDenseKernels();
  const bool rounds = any && precision == Precision::kBf16 && Bf16DenseKernels() != nullptr;
  return rounds ? *Bf16DenseKernels() : Avx512DenseKernels();
}

}  // namespace

const DenseKernels& BestDenseKernels(Precision precision) {
  static const DenseKernels* const best[] = {&ChooseKernels(Precision::kF32),
                                             &ChooseKernels(Precision::kBf16)};
  return *best[static_cast<std::size_t>(precision)];
}

std::vector<const DenseKernels*> AllDenseKernels() {
  std::vector<const DenseKernels*> all = {&kTable};
  if (!HasAvx512()) return all;
  all.push_back(&Avx512DenseKernels());
  for (const DenseKernels* table : {Bf16DenseKernels(), AmxDenseKernels()}) {
    if (table != nullptr) all.push_back(table);
  }
  return all;
}

}  // namespace tetrion
