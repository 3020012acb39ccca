#include "lib/cuda/sim/fault_report.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <cstdlib>
#include <thread>

#include "lib/cuda/launch.h"
#include "lib/cuda/sim/simulator.h"

// Faults at addresses of buffers: memory_test.cc.

namespace tetrion::cuda::sim {
namespace {

// `depth` frames of a kilobyte.
int Descend(int depth) {  // NOLINT(misc-no-recursion): is what it is for
  volatile char frame[1024];
  frame[depth % 1024] = 1;
  return depth == 0 ? 0 : Descend(depth - 1) + frame[depth % 1024];
}

__global__ void DescendTooFar(DeviceSpan<int> out) {
  __syncthreads();
  if (threadIdx.x == 1) out[0] = Descend(1 << 20);
}

void RunOutOfStack() {
  Simulator::Get().Restart({.schedule = {Order::kForward, 0}});
  const Device device(0);
  const DeviceBuffer out(device, 4, "out");
  Stream stream(device, "work");
  Launch(stream, DescendTooFar, 1, 2, 0, DeviceSpan<int>(out.data<int>(), 1));
  stream.Synchronize();
}

constexpr char kOutOfStack[] =
    "past the end of a simulated thread's stack .kernel launched at .*fault_report_test.cc.*thread "
    "\\(1,0,0\\)";

TEST(FaultReportDeathTest, AKernelThatRunsOutOfStackIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RunOutOfStack(), kOutOfStack);
  EXPECT_DEATH(std::thread(RunOutOfStack).join(), kOutOfStack);
}

TEST(FaultReportDeathTest, ASignalThatWasSentIsNotSwallowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        (void)Simulator::Get().MemoryState();
        (void)raise(SIGSEGV);
        std::_Exit(0);
      },
      "");
}

}  // namespace
}  // namespace tetrion::cuda::sim
