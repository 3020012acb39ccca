#include "lib/cuda/runtime/cupti_guard.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

__global__ void CountUp(DeviceSpan<std::int32_t> out) {
  out[threadIdx.x] += 1;
}

// As HostCopyGuard's tests; the positive controls are copies that only the driver sees.
class CuptiGuardTest : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    if (IsSkipped()) return;
    values = DeviceBuffer(*device, 256, "values");
    pinned = PinnedBuffer(256, "pinned");
    for (int i = 0; i < 3; ++i) Work();  // what is made once is not the path's
    stream->Synchronize();
  }
  void Work() {
    Launch(*stream, CountUp, 1, 64, 0, DeviceSpan<std::int32_t>(values.data<std::int32_t>(), 64));
    CopyOnDevice(values.data<char>() + 128, values.data<char>(), 128, CopyPurpose::kIngest,
                 *stream);
  }
  // As a library does that does not know device.h.
  void CopyBehindTheBack(void* to, const void* from) {
    ASSERT_EQ(cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault,
                              static_cast<cudaStream_t>(stream->native())),
              cudaSuccess);
  }

  DeviceBuffer values;
  PinnedBuffer pinned;
};

TEST_F(CuptiGuardTest, KernelsAndCopiesOnTheDeviceAreFine) {
  CuptiGuard guard(*device);
  Work();
  EXPECT_THAT(guard.Violations(), IsEmpty());
}

TEST_F(CuptiGuardTest, FindsOneCopyOfFourBytesThatTheOtherGuardCannotSee) {
  for (const bool to_device : {true, false}) {
    const HostCopyGuard blind;
    CuptiGuard guard(*device);
    Work();
    char* host = pinned.data<char>();
    char* there = values.data<char>();
    CopyBehindTheBack(to_device ? there : host, to_device ? host : there);
    EXPECT_THAT(guard.Violations(), ElementsAre(std::string("1 copies of pinned memory ") +
                                                (to_device ? "host to device" : "device to host") +
                                                ", 4 bytes where 0 are allowed"));
    EXPECT_THAT(blind.Violations(), IsEmpty());
  }
}

TEST_F(CuptiGuardTest, FindsWhatItemDoes) {
  CuptiGuard guard(*device);
  Work();
  std::int32_t pageable = 0;
  CopyBehindTheBack(&pageable, values.data<char>());
  ASSERT_EQ(cudaStreamSynchronize(static_cast<cudaStream_t>(stream->native())), cudaSuccess);
  const std::vector<std::string> violations = guard.Violations();
  EXPECT_THAT(violations, Contains(HasSubstr("pageable memory device to host")));
  EXPECT_THAT(violations, Contains(HasSubstr("waits of the host")));
}

TEST_F(CuptiGuardTest, CopiesOfGraphsAreSeen) {
  Capture capture(*stream);
  Work();
  CopyToDevice(values.data<char>(), pinned.data<char>(), 4, CopyPurpose::kIngest, *stream);
  const Graph graph = capture.End();
  CuptiGuard guard(*device);
  stream->Launch(graph);
  stream->Launch(graph);
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("2 copies of pinned memory")));
}

TEST_F(CuptiGuardTest, AllowedCopiesAreCountedToTheByte) {
  const AllowedCopies allowed[] = {
      {CopyDirection::kHostToDevice, MemoryKind::kPinned, CopyPurpose::kIngest, 8}};
  for (const int copies : {1, 2}) {
    CuptiGuard guard(*device);
    Work();
    for (int i = 0; i < copies; ++i) {
      CopyToDevice(values.data<char>(), pinned.data<char>(), 4, CopyPurpose::kIngest, *stream);
    }
    const std::vector<std::string> violations = guard.Violations(allowed);
    EXPECT_EQ(violations.empty(), copies == 2) << ::testing::PrintToString(violations);
  }
}

TEST_F(CuptiGuardTest, ARegionWithoutKernelsProvesNothing) {
  CuptiGuard guard(*device);
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("no kernel was launched")));
}

}  // namespace
}  // namespace tetrion::cuda
