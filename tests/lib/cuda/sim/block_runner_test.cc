#include "lib/cuda/sim/block_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "lib/cuda/sim/finding.h"
#include "lib/cuda/sim/kernel_calls.h"
#include "tests/lib/cuda/good_kernels.cuh"
#include "tests/lib/cuda/sim/bad_kernels.cuh"
#include "tests/support/sim_schedules.h"

// Every fault of bad_kernels.cuh is found, with its kind and its line; no good kernel is complained
// of.

namespace tetrion::cuda::sim {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The number of the line of bad_kernels.cuh that ends with this comment.
int LineOf(const std::string& comment) {
  std::ifstream file(TETRION_BAD_KERNELS);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with("// " + comment)) return number;
  }
  ADD_FAILURE() << "no line of " << TETRION_BAD_KERNELS << " ends with // " << comment;
  return 0;
}

// Runs one block of `threads` under every schedule; what was found each time.
template <typename Kernel>
std::vector<std::optional<Finding>> FindingsOf(Kernel launch, std::uint64_t seeds) {
  std::vector<std::optional<Finding>> findings;
  testing::ForEachSimSchedule(seeds, [&] {
    const Device device(0);
    const DeviceBuffer out(device, 64 * sizeof(std::int32_t), "out");
    Stream stream(device, "work");
    launch(stream, DeviceSpan<std::int32_t>(out.data<std::int32_t>(), 64));
    try {
      stream.Synchronize();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("repeats the schedule"));
      EXPECT_THROW(stream.Synchronize(), Error) << "a finding stays";
      EXPECT_THROW(SetBytes(out.data<char>(), 0, 4, stream), Error);
    }
    findings.push_back(Simulator::Get().TakeFinding());
  });
  return findings;
}

// Expects the fault in every schedule.
template <typename Launcher>
void ExpectFound(Diagnosis what, const std::vector<std::string>& comments, Launcher launch) {
  std::vector<int> lines;
  for (const std::string& comment : comments) lines.push_back(LineOf(comment));
  for (const std::optional<Finding>& finding : FindingsOf(launch, 10)) {
    ASSERT_TRUE(finding.has_value()) << Name(what);
    EXPECT_STREQ(Name(finding->what), Name(what)) << finding->text;
    EXPECT_THAT(finding->where.file, EndsWith("bad_kernels.cuh")) << finding->text;
    EXPECT_THAT(lines, ::testing::Contains(finding->where.line)) << finding->text;
    EXPECT_THAT(finding->text, HasSubstr("block_runner_test.cc")) << "names the launch";
  }
}

using Span = DeviceSpan<std::int32_t>;

TEST(BlockRunnerTest, NamesDivergentBarriersByLine) {
  ExpectFound(Diagnosis::kDifferentBarriers, {"divergent", "divergent, the other"},
              [](Stream& s, Span) { Launch(s, DivergentBarriers, 2, 48, 0); });
  ExpectFound(Diagnosis::kDifferentBarriers, {"divergent vote", "divergent vote, the other"},
              [](Stream& s, Span) { Launch(s, DivergentVotes, 2, 48, 0); });
}

TEST(BlockRunnerTest, FindsAThreadThatReturnsWhileOthersWait) {
  ExpectFound(Diagnosis::kReturnedBeforeBarrier, {"returned"},
              [](Stream& s, Span) { Launch(s, ReturnsBeforeBarrier, 1, 48, 0); });
}

TEST(BlockRunnerTest, FindsMasksThatNameEndedLanes) {
  ExpectFound(Diagnosis::kMaskNamesEndedLane, {"ended lane"},
              [](Stream& s, Span out) { Launch(s, MaskNamesReturnedLane, 1, 32, 0, out); });
  ExpectFound(Diagnosis::kMaskNamesEndedLane, {"missing lane, in a block of 16"},
              [](Stream& s, Span) { Launch(s, MaskNamesMissingLane, 1, 16, 0); });
}

TEST(BlockRunnerTest, FindsLanesOutsideOfTheMask) {
  ExpectFound(Diagnosis::kOutsideMask, {"leaves itself out"},
              [](Stream& s, Span) { Launch(s, CallsOutsideItsMask, 1, 32, 0); });
  ExpectFound(Diagnosis::kOutsideMask, {"reads outside"},
              [](Stream& s, Span out) { Launch(s, ReadsOutsideTheMask, 1, 32, 0, out); });
}

TEST(BlockRunnerTest, FindsDifferentOperationsInOneWarp) {
  ExpectFound(Diagnosis::kDifferentWarpOperations, {"warp call", "warp call, the other"},
              [](Stream& s, Span) { Launch(s, DifferentWarpCalls, 1, 32, 0); });
}

TEST(BlockRunnerTest, FindsSharedMemoryNeverWritten) {
  ExpectFound(Diagnosis::kSharedNeverWritten, {"unwritten"}, [](Stream& s, Span out) {
    Launch(s, ReadsSharedNeverWritten, 1, 32, 32 * sizeof(std::int32_t), out);
  });
  ExpectFound(Diagnosis::kSharedNeverWritten, {"unwritten count"},
              [](Stream& s, Span) { Launch(s, CountsFromNothing, 1, 32, 0); });
}

TEST(BlockRunnerTest, FindsIndicesPastTheEnd) {
  ExpectFound(Diagnosis::kIndexPastEnd, {"past the end"},
              [](Stream& s, Span out) { Launch(s, IndexPastTheEnd, 1, 64, 0, out); });
  ExpectFound(Diagnosis::kIndexPastEnd, {"negative"},
              [](Stream& s, Span out) { Launch(s, NegativeIndex, 1, 64, 0, out); });
  ExpectFound(Diagnosis::kIndexPastEnd, {"shared end"},
              [](Stream& s, Span) { Launch(s, SharedIndexPastTheEnd, 1, 64, 0); });
}

TEST(BlockRunnerTest, FindsDeadlocks) {
  ExpectFound(Diagnosis::kDeadlock, {"waits for the rest"},
              [](Stream& s, Span) { Launch(s, Deadlock, 1, 32, 0); });
}

// Of every two threads one reads what the other writes without a barrier between: whichever order,
// one of them is late.
TEST(BlockRunnerTest, FindsAMissingBarrierInEveryOrder) {
  for (const std::optional<Finding>&finding :
       FindingsOf([](Stream& s, Span out) { Launch(s, MissingBarrier, 1, 64, 0, out); }, 100)) {
    ASSERT_TRUE(finding.has_value());
    EXPECT_EQ(finding->what, Diagnosis::kSharedNeverWritten);
    EXPECT_EQ(finding->where.line, LineOf("never written"));
  }
}

TEST(BlockRunnerTest, ShowsAMissingBarrierByItsValues) {
  int wrong = 0, runs = 0;
  testing::ForEachSimSchedule(100, [&] {
    const Device device(0);
    const DeviceBuffer out(device, 64 * sizeof(std::int32_t), "out");
    Stream stream(device, "work");
    Launch(stream, MissingSecondBarrier, 1, 64, 0, Span(out.data<std::int32_t>(), 64));
    std::vector<std::int32_t> values(64);
    CopyToHost(values.data(), out.data<char>(), out.bytes(), CopyPurpose::kSetUp, stream);
    ++runs;
    if (std::find(values.begin(), values.end(), 1) != values.end()) ++wrong;
  });
  EXPECT_EQ(wrong, runs);
}

// Warps run ahead of each other although no thread waits at a barrier.
TEST(BlockRunnerTest, GoodKernelsAreFineInEveryOrder) {
  std::vector<std::int32_t> values(128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i % 17);
  testing::ForEachSimSchedule(100, [&] {
    const Device device(0);
    Stream stream(device, "work");
    const DeviceBuffer in(device, 512, "in"), out(device, 8, "out");
    CopyToDevice(in.data<char>(), values.data(), 512, CopyPurpose::kSetUp, stream);
    Launch(stream, BlockSums, 2, 64, 0,
           DeviceSpan<const std::int32_t>(in.data<std::int32_t>(), 128),
           Span(out.data<std::int32_t>(), 2));
    Launch(stream, PrefixSums<std::int32_t>, 1, 128, 512, Span(in.data<std::int32_t>(), 128));
    std::vector<std::int32_t> sums(128), blocks(2);
    CopyToHost(sums.data(), in.data<char>(), 512, CopyPurpose::kSetUp, stream);
    CopyToHost(blocks.data(), out.data<char>(), 8, CopyPurpose::kSetUp, stream);
    EXPECT_EQ(blocks[0], sums[63]);
    EXPECT_EQ(blocks[0] + blocks[1], sums[127]);
  });
}

// A block that was given up leaves nothing behind for a smaller one.
TEST(BlockRunnerTest, AFindingEndsWithItsBlock) {
  testing::ForEachSimSchedule(3, [] {
    const Device device(0);
    Stream stream(device, "work");
    Launch(stream, DivergentBarriers, 1, 64, 0);
    EXPECT_THROW(stream.Synchronize(), Error);
    EXPECT_TRUE(Simulator::Get().TakeFinding().has_value());
  });
  Simulator::Get().Restart({.schedule = {Order::kReverse, 0}});
  const Device device(0);
  Stream stream(device, "work");
  const DeviceBuffer in(device, 128, "in");
  SetBytes(in.data<char>(), 0, 128, stream);
  Launch(stream, PrefixSums<std::int32_t>, 1, 32, 128, Span(in.data<std::int32_t>(), 32));
  stream.Synchronize();
}

TEST(BlockRunnerTest, ExceptionsOfAKernelAreFindings) {
  void (*const kernels[])() = {[] { throw std::runtime_error("not on a device"); },
                               [] { throw 1; }};
  testing::ForEachSimSchedule(3, [&] {
    for (void (*kernel)() : kernels) {
      const Device device(0);
      Stream stream(device, "work");
      Launch(stream, kernel, 1, 32, 0);
      EXPECT_THROW(stream.Synchronize(), Error);
      const std::optional<Finding> finding = Simulator::Get().TakeFinding();
      ASSERT_TRUE(finding.has_value());
      EXPECT_EQ(finding->what, Diagnosis::kException);
    }
  });
}

__global__ void WaitForTheHost(std::atomic<int>* step) {
  step->store(1);
  while (step->load() == 1) std::this_thread::yield();
}

TEST(BlockRunnerTest, AnIndexOfAnotherHostThreadIsNoKernels) {
  Simulator::Get().Restart({});
  const Device device(0);
  Stream stream(device, "work");
  std::atomic<int> step{0};
  Launch(stream, WaitForTheHost, 1, 1, 0, &step);
  std::thread runs([&] { stream.Synchronize(); });  // a plain thread: an Agent would add nothing
  while (step.load() == 0) std::this_thread::yield();
  int values[2] = {};
  EXPECT_THROW((void)DeviceSpan<int>(values, 2)[2], Error);
  step.store(2);
  runs.join();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space
struct Inside {
  explicit Inside(int* threads) : count(threads) { ++*count; }
  ~Inside() { --*count; }
  int* count;
};

__global__ void AllWait(int* inside) {
  const Inside here(inside);
  __syncthreads();
}

// Where no stack can be had, memory is freed all the same, the threads that wait are unwound, and
// the next call says why.
TEST(BlockRunnerDeathTest, TooLittleMemoryForStacksIsAFinding) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Simulator::Get().Restart({});
    const Device device(0);
    DeviceBuffer buffer(device, 4, "buffer");
    Stream stream(device, "work");
    int inside = 0;
    Launch(stream, AllWait, 1, 1024, 0, &inside);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit = {pages * 4096 + (64 << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(1);
    buffer = {};
    const std::optional<Finding> finding = Simulator::Get().TakeFinding();
    if (inside != 0) std::exit(3);
    std::exit(finding && finding->text.find("no memory for the stack") != std::string::npos ? 0
                                                                                            : 2);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

#if !defined(__SANITIZE_ADDRESS__)  // reports it itself, and ends the process
TEST(BlockRunnerTest, FindsRawWritesPastTheEnd) {
  static constexpr int kValues = 63;  // 4 bytes are left to the next multiple of 256
  testing::ForEachSimSchedule(3, [] {
    const Device device(0);
    const DeviceBuffer out(device, kValues * sizeof(std::int32_t), "out");
    Stream stream(device, "work");
    Launch(stream, RawWritePastTheEnd, 1, 32, 0, out.data<std::int32_t>(), kValues);
    EXPECT_THROW(stream.Synchronize(), Error);
    const std::optional<Finding> finding = Simulator::Get().TakeFinding();
    ASSERT_TRUE(finding.has_value());
    EXPECT_EQ(finding->what, Diagnosis::kIndexPastEnd);
    EXPECT_THAT(finding->text, HasSubstr("past the end of a buffer of 252"));
  });
}
#else
TEST(BlockRunnerDeathTest, AddressSanitizerSeesRawWritesPastTheEnd) {
  EXPECT_DEATH(
      {
        const Device device(0);
        const DeviceBuffer out(device, 252, "out");
        Stream stream(device, "work");
        Launch(stream, RawWritePastTheEnd, 1, 32, 0, out.data<std::int32_t>(), 63);
        stream.Synchronize();
      },
      "AddressSanitizer");
}
#endif

}  // namespace
}  // namespace tetrion::cuda::sim
