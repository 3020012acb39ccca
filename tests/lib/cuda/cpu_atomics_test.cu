#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

// Atomics of every type that kernels here use, in device and in shared memory, on either backend.

namespace tetrion::cuda {
namespace {

// Each of 64 threads does all that its type knows; sums[i] is the i-th operation's.
template <typename T>
__global__ void Add(DeviceSpan<T> sums) {
  TETRION_SHARED(T, shared, 1);
  if (threadIdx.x == 0) shared[0] = 0;
  __syncthreads();
  atomicAdd(&shared[0], static_cast<T>(threadIdx.x));
  const T old = atomicAdd(&sums[0], static_cast<T>(2));
  if (old == static_cast<T>(126)) sums[1] = 1;
  __syncthreads();
  if (threadIdx.x == 0) sums[2] = shared[0];
}

template <typename T>
__global__ void CombineBits(DeviceSpan<T> cells) {
  const T value = static_cast<T>(threadIdx.x);
  atomicMax(&cells[0], value);
  atomicMin(&cells[1], value);
  atomicOr(&cells[2], value);
  atomicAnd(&cells[3], static_cast<T>(value | 64));
  atomicXor(&cells[4], static_cast<T>(1));
  atomicExch(&cells[5], static_cast<T>(9));
  if (atomicCAS(&cells[6], static_cast<T>(0), value + 1) == 0) cells[7] = value + 1;
}

class CpuAtomicsTest : public DeviceFixture {
 protected:
  template <typename T>
  void ExpectSums() {
    const DeviceBuffer sums = Upload(std::vector<T>(3, T{0}));
    Launch(*stream, Add<T>, 1, 64, 0, DeviceSpan<T>(sums.data<T>(), 3));
    EXPECT_EQ(Download<T>(sums), (std::vector<T>{128, 1, 2016}));
  }
  template <typename T>
  void ExpectBits() {
    const DeviceBuffer cells = Upload(std::vector<T>{0, 100, 0, 127, 0, 0, 0, 0});
    Launch(*stream, CombineBits<T>, 1, 64, 0, DeviceSpan<T>(cells.data<T>(), 8));
    const std::vector<T> values = Download<T>(cells);
    const T winner = values[6];
    EXPECT_EQ(values, (std::vector<T>{63, 0, 63, 64, 0, 9, winner, winner}));
    EXPECT_GE(winner, T{1});
    EXPECT_LE(winner, T{64});
  }
};

TEST_F(CpuAtomicsTest, AddsIntegersAndFloats) {
  ExpectSums<int>();
  ExpectSums<unsigned>();
  ExpectSums<unsigned long long>();
  ExpectSums<float>();
  ExpectSums<double>();
}

TEST_F(CpuAtomicsTest, CombinesBits) {
  ExpectBits<int>();
  ExpectBits<unsigned>();
  ExpectBits<unsigned long long>();
}

}  // namespace
}  // namespace tetrion::cuda
