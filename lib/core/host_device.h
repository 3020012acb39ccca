#pragma once

// Marks functions that both the C++ and the CUDA compiler build: rules, Philox, record codecs.
#if defined(__CUDACC__)
#define TETRION_HOST_DEVICE __host__ __device__
#else
#define TETRION_HOST_DEVICE
#endif
