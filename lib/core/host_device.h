#pragma once

// Marks functions that both the C++ and the CUDA compiler build: rules, Philox, record codecs.
#if defined(__CUDACC__)
#define TETRION_HOST_DEVICE __host__ __device__
#else
#define TETRION_HOST_DEVICE
#endif

// The same, and the C++ compiler inlines it wherever it is called: short steps of hot loops, which
// would pass their results through memory. The CUDA compiler inlines by itself.
#if defined(__CUDACC__)
#define TETRION_HOST_DEVICE_INLINE __host__ __device__ inline
#else
#define TETRION_HOST_DEVICE_INLINE [[gnu::always_inline]] inline
#endif
