// The kernels for x86-64-v4, whose vectors are twice as wide.
#define TETRION_KERNELS_NAME "avx512"
#include "lib/envs/cartpole/cartpole_batch_impl.h"

namespace tetrion {

const CartPoleKernels& Avx512CartPoleKernels() {
  return kTable;
}

}  // namespace tetrion
