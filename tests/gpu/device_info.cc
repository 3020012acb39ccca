#include <cstdio>

#include "lib/core/error.h"
#include "lib/cuda/device.h"

// Prints name and memory of the first CUDA device. Exit status 3 where there is none.
int main() {
  try {
    if (tetrion::cuda::Device::Count() == 0) return 3;
    const tetrion::cuda::Device device(0);
    std::printf("%s, %zu MiB\n", device.name().c_str(), device.Memory().total_bytes >> 20);
  } catch (const tetrion::Error& error) {
    (void)std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
