#pragma once

#include "lib/cuda/kernel_spans.h"

// What a .cuh file with kernels includes. Kernels are plain CUDA, but for shared memory, which the
// simulator must see: `auto sums = SharedBytes<float>();` is the dynamic part of the launch, and
// TETRION_SHARED(float, sums, 32); an array of the block's own. Both are a SharedSpan.
//
// nvcc compiles kernels for a device, g++ for the simulator, with cpu_kernels.h for CUDA's words.
// Not imitated: weak memory between blocks, timing, fused multiply-adds, faults of a device.

#if defined(__CUDACC__)

namespace tetrion::cuda {

template <typename T>
class SharedSpan {
 public:
  __device__ SharedSpan(T* data, std::size_t size) : data_(data), size_(size) {}
  __device__ std::size_t size() const { return size_; }
  __device__ T& operator[](std::size_t index) const { return data_[index]; }
  // [count] values from `first` on.
  __device__ SharedSpan Part(std::size_t first, std::size_t count) const {
    return SharedSpan(data_ + first, count);
  }

 private:
  T* data_;
  std::size_t size_;
};

template <typename T>
__device__ SharedSpan<T> SharedBytes() {
  extern __shared__ __align__(16) unsigned char tetrion_dynamic_shared[];
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  return SharedSpan<T>(reinterpret_cast<T*>(tetrion_dynamic_shared), bytes / sizeof(T));
}

}  // namespace tetrion::cuda

// In front of a loop whose arrays must lie in registers.
#define TETRION_UNROLL _Pragma("unroll")

#define TETRION_SHARED(type, name, count) \
  __shared__ type name##_memory[count];   \
  const ::tetrion::cuda::SharedSpan<type> name(name##_memory, count)

#else
#include "lib/cuda/cpu_kernels.h"
#define TETRION_UNROLL
#endif
