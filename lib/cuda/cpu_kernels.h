#pragma once

#include "lib/cuda/backend.h"
#include "lib/cuda/cpu_arithmetic.h"
#include "lib/cuda/cpu_atomics.h"
#include "lib/cuda/cpu_shared.h"
#include "lib/cuda/cpu_warp.h"

// CUDA's words for kernels that g++ compiles for the simulator: here what marks functions and what
// a thread is called; arithmetic, atomics, shared memory, barriers and warps in the headers above.
// A kernel that needs another word of CUDA gets it there, with a test.
//
// Thread roles: a kernel runs on the host thread that drives the simulator, under its mutex, one
// simulated thread at a time; so atomics are plain, and the indices are ordinary globals.

// NOLINTBEGIN: the names are CUDA's
#define __global__ inline
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(bytes) alignas(bytes)

namespace tetrion::cuda::sim {

// Of the simulated thread that runs now.
struct KernelIndices {
  Dim3 thread, block, block_size, grid_size;
};
extern KernelIndices g_kernel_indices;
void SetKernelIndices(const Dim3& grid_size, const Dim3& block_size, const Dim3& block);
void SetThreadIndex(const Dim3& thread);

}  // namespace tetrion::cuda::sim

inline const tetrion::cuda::Dim3& threadIdx = tetrion::cuda::sim::g_kernel_indices.thread;
inline const tetrion::cuda::Dim3& blockIdx = tetrion::cuda::sim::g_kernel_indices.block;
inline const tetrion::cuda::Dim3& blockDim = tetrion::cuda::sim::g_kernel_indices.block_size;
inline const tetrion::cuda::Dim3& gridDim = tetrion::cuda::sim::g_kernel_indices.grid_size;
inline constexpr int warpSize = 32;
// NOLINTEND
