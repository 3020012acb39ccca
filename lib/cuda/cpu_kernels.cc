#include "lib/cuda/cpu_kernels.h"

namespace tetrion::cuda::sim {

KernelIndices g_kernel_indices;

void SetKernelIndices(const Dim3& grid_size, const Dim3& block_size, const Dim3& block) {
  g_kernel_indices.grid_size = grid_size;
  g_kernel_indices.block_size = block_size;
  g_kernel_indices.block = block;
}

void SetThreadIndex(const Dim3& thread) {
  g_kernel_indices.thread = thread;
}

}  // namespace tetrion::cuda::sim
