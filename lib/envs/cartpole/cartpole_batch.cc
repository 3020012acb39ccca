// The kernels of the build's own instruction set, and the choice.
#define TETRION_KERNELS_NAME "baseline"
#include "lib/core/avx512.h"
#include "lib/envs/cartpole/cartpole_batch_impl.h"

namespace tetrion {

// Defined in cartpole_batch_avx512.cc, which is compiled for x86-64-v4.
const CartPoleKernels& Avx512CartPoleKernels();

const CartPoleKernels& BestCartPoleKernels() {
  static const CartPoleKernels& best = *AllCartPoleKernels().back();
  return best;
}

std::vector<const CartPoleKernels*> AllCartPoleKernels() {
  std::vector<const CartPoleKernels*> all = {&kTable};
  if (HasAvx512()) all.push_back(&Avx512CartPoleKernels());
  return all;
}

}  // namespace tetrion
