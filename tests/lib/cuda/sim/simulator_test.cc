#include "lib/cuda/sim/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "tests/support/sim_schedules.h"

namespace tetrion::cuda::sim {
namespace {

using ::testing::HasSubstr;

// The property: a ring of `kChunks` chunks on the device is written by one stream and read by
// another. Chunk c of the work carries c in every row; the reader counts rows that carry anything
// else. With both waits no order of the streams makes a wrong row; without either nearly every one
// does.
constexpr std::uint32_t kChunks = 4, kRows = 24, kRounds = 40;

struct Protocol {
  bool wait_before_overwriting = true;
  bool wait_before_reading = true;
};

__global__ void WriteChunk(DeviceSpan<std::uint32_t> ring, std::uint32_t chunk) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  ring[chunk % kChunks * kRows + row] = chunk;
}

__global__ void ReadChunk(DeviceSpan<const std::uint32_t> ring, std::uint32_t chunk,
                          DeviceSpan<std::uint32_t> wrong) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (ring[chunk % kChunks * kRows + row] != chunk) atomicAdd(&wrong[0], 1U);
}

// Rows that the reader saw and should not have.
std::uint32_t WrongRows(const Protocol& protocol) {
  const Device device(0);
  const DeviceBuffer ring_memory(device, kChunks * kRows * 4, "ring"), count(device, 4, "count");
  const DeviceSpan<std::uint32_t> ring(ring_memory.data<std::uint32_t>(), kChunks * kRows);
  const DeviceSpan<std::uint32_t> wrong(count.data<std::uint32_t>(), 1);
  PinnedBuffer result(4, "result");
  Stream writer(device, "writer"), reader(device, "reader");
  std::vector<Event> written, read;
  for (std::uint32_t c = 0; c < kChunks; ++c) {
    written.emplace_back(device);
    read.emplace_back(device);
  }
  SetBytes(count.data<char>(), 0, 4, reader);
  for (std::uint32_t chunk = 0; chunk < kRounds; ++chunk) {
    const std::uint32_t slot = chunk % kChunks;
    if (protocol.wait_before_overwriting) writer.Wait(read[slot]);
    Launch(writer, WriteChunk, 3, kRows / 3, 0, ring, chunk);
    writer.Record(written[slot]);
    if (protocol.wait_before_reading) reader.Wait(written[slot]);
    Launch(reader, ReadChunk, 3, kRows / 3, 0,
           DeviceSpan<const std::uint32_t>(ring.data(), ring.size()), chunk, wrong);
    reader.Record(read[slot]);
  }
  CopyToHost(result.data<char>(), count.data<char>(), 4, CopyPurpose::kAccount, reader);
  reader.Synchronize();
  return *result.data<std::uint32_t>();
}

// Of the random schedules, how many show the fault.
int Failures(const Protocol& protocol, std::uint64_t seeds) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Simulator::Get().Restart({.schedule = {Order::kRandom, seed}});
    if (WrongRows(protocol) != 0) ++failures;
  }
  return failures;
}

TEST(SimulatorTest, ACorrectRingIsCorrectInEverySchedule) {
  testing::ForEachSimSchedule(500, [] { EXPECT_EQ(WrongRows({}), 0U); });
}

TEST(SimulatorTest, AMissingWaitBeforeOverwritingIsFound) {
  EXPECT_GE(Failures({.wait_before_overwriting = false}, 500), 490);
}

TEST(SimulatorTest, AMissingWaitBeforeReadingIsFound) {
  EXPECT_GE(Failures({.wait_before_reading = false}, 500), 490);
}

// Draining one stream after the other shows each fault in one of the two orders.
TEST(SimulatorTest, ForwardAndReverseOrdersDiffer) {
  const auto wrong = [](Order order, const Protocol& protocol) {
    Simulator::Get().Restart({.schedule = {order, 0}});
    return WrongRows(protocol) != 0;
  };
  EXPECT_TRUE(wrong(Order::kForward, {.wait_before_overwriting = false}));
  EXPECT_TRUE(wrong(Order::kReverse, {.wait_before_reading = false}));
  EXPECT_FALSE(wrong(Order::kForward, {.wait_before_reading = false}));
}

__global__ void NoteStream(std::vector<int>* order, int stream) {
  order->push_back(stream);
}

// How often one of two busy streams got more than 40 steps in a row, while both had work.
int LongRuns(std::uint64_t seed) {
  Simulator::Get().Restart({.schedule = {Order::kRandom, seed}});
  const Device device(0);
  for (int i = 0; i < 1000; ++i) (void)Stream(device, "closed");
  constexpr int kSteps = 1000;
  std::vector<int> order;
  Stream one(device, "one"), two(device, "two");
  for (int i = 0; i < kSteps; ++i) {
    Launch(one, NoteStream, 1, 1, 0, &order, 0);
    Launch(two, NoteStream, 1, 1, 0, &order, 1);
  }
  one.Synchronize();
  two.Synchronize();
  int long_runs = 0, run = 0, steps[2] = {};
  for (std::size_t i = 0; steps[0] < kSteps && steps[1] < kSteps; ++i) {
    ++steps[order[i]];
    run = i > 0 && order[i] == order[i - 1] ? run + 1 : 1;
    if (run == 41) ++long_runs;
  }
  return long_runs;
}

TEST(SimulatorTest, StreamsStarveAlthoughManyWereClosedBeforeThem) {
  int long_runs = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) long_runs += LongRuns(seed);
  EXPECT_GT(long_runs, 25);
}

TEST(SimulatorTest, AScheduleRepeatsItself) {
  const auto order = [] {
    Simulator::Get().Restart({.schedule = {Order::kRandom, 77}});
    return WrongRows({.wait_before_overwriting = false});
  };
  const std::uint32_t first = order();
  EXPECT_EQ(order(), first);
  EXPECT_EQ(order(), first);
}

TEST(SimulatorTest, NothingRunsWhenItIsEnqueued) {
  testing::ForEachSimSchedule(20, [] {
    const Device device(0);
    PinnedBuffer from(4, "from"), to(4, "to");
    DeviceBuffer value(device, 4, "value");
    *from.data<int>() = 1;
    *to.data<int>() = 0;
    Stream stream(device, "work");
    CopyToDevice(value.data<char>(), from.data<char>(), 4, CopyPurpose::kIngest, stream);
    CopyToHost(to.data<char>(), value.data<char>(), 4, CopyPurpose::kAccount, stream);
    EXPECT_EQ(*to.data<int>(), 0);
    *from.data<int>() = 2;  // too early: the copy is still to come
    stream.Synchronize();
    EXPECT_EQ(*to.data<int>(), 2);
  });
}

TEST(SimulatorTest, FreeingWaitsForTheWorkThatUsesTheMemory) {
  testing::ForEachSimSchedule(20, [] {
    const Device device(0);
    PinnedBuffer to(64, "to");
    Stream stream(device, "work");
    {
      DeviceBuffer value(device, 64, "value");
      SetBytes(value.data<char>(), 5, 64, stream);
      CopyToHost(to.data<char>(), value.data<char>(), 64, CopyPurpose::kAccount, stream);
    }
    EXPECT_EQ(to.data<char>()[63], 5);
  });
}

TEST(SimulatorTest, AClosedStreamStillDoesItsWork) {
  testing::ForEachSimSchedule(20, [] {
    const Device device(0);
    PinnedBuffer to(1, "to");
    DeviceBuffer value(device, 1, "value");
    Event done(device);
    {
      Stream stream(device, "short");
      SetBytes(value.data<char>(), 5, 1, stream);
      CopyToHost(to.data<char>(), value.data<char>(), 1, CopyPurpose::kAccount, stream);
      stream.Record(done);
    }
    done.Synchronize();
    EXPECT_EQ(*to.data<char>(), 5);
  });
}

TEST(SimulatorTest, CopiesComeInPartsBetweenWhichOthersRun) {
  int torn = 0;
  testing::ForEachSimSchedule(100, [&torn] {
    const Device device(0);
    PinnedBuffer to(64, "to");
    DeviceBuffer value(device, 64, "value");
    Stream one(device, "one"), two(device, "two");
    SetBytes(value.data<char>(), 1, 64, one);
    one.Synchronize();
    SetBytes(value.data<char>(), 2, 64, one);
    CopyToHost(to.data<char>(), value.data<char>(), 64, CopyPurpose::kAccount, two);
    one.Synchronize();
    two.Synchronize();
    if (to.data<char>()[0] != to.data<char>()[63]) ++torn;
  });
  EXPECT_GT(torn, 5);
}

__global__ void FillsOneTooMany(DeviceSpan<std::uint32_t> out) {
  for (std::size_t i = 0; i <= out.size(); ++i) out[i] = 0;
}

// Enqueues the fault on a stream that is closed before the work is done.
void LeaveAFault(const DeviceBuffer& out) {
  Stream stream(Device(0), "left");
  Launch(stream, FillsOneTooMany, 1, 1, 0, DeviceSpan<std::uint32_t>(out.data<std::uint32_t>(), 4));
}

TEST(SimulatorTest, AFindingThatNoCallerTakesFailsTheBody) {
  EXPECT_NONFATAL_FAILURE(
      testing::ForEachSimSchedule(3, [] { LeaveAFault(DeviceBuffer(Device(0), 16, "freed")); }),
      "not taken: index past the end");
  static DeviceBuffer kept(Device(0), 16, "kept");  // no local: the macro forbids it
  EXPECT_NONFATAL_FAILURE(testing::ForEachSimSchedule(3, [] { LeaveAFault(kept); }),
                          "not taken: index past the end");
  kept = {};
}

TEST(SimulatorTest, RestartingDoesTheWorkLeftAndThrowsWhatItFinds) {
  Simulator::Get().Restart({});
  const DeviceBuffer value(Device(0), 16, "value");
  const PinnedBuffer to(1, "to");
  {
    Stream stream(Device(0), "left");
    SetBytes(value.data<char>(), 5, 16, stream);
    CopyToHost(to.data<char>(), value.data<char>(), 1, CopyPurpose::kAccount, stream);
  }
  Simulator::Get().Restart({});
  EXPECT_EQ(*to.data<char>(), 5);
  LeaveAFault(value);
  EXPECT_THROW(Simulator::Get().Restart({}), Error);
  Simulator::Get().Restart({});
}

TEST(SimulatorTest, ATakenFindingIsGoneWithTheWorkBehindIt) {
  Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer out(device, 16, "out");
  Event event(device);
  Stream stream(device, "work");
  Launch(stream, FillsOneTooMany, 1, 1, 0, DeviceSpan<std::uint32_t>(out.data<std::uint32_t>(), 4));
  SetBytes(out.data<char>(), 5, 16, stream);
  stream.Record(event);
  EXPECT_THROW(stream.Synchronize(), Error);
  ASSERT_TRUE(Simulator::Get().TakeFinding().has_value());
  event.Synchronize();
  std::uint32_t first = 1;
  CopyToHost(&first, out.data<char>(), 4, CopyPurpose::kSetUp, stream);
  EXPECT_EQ(first, 0U);
  EXPECT_FALSE(Simulator::Get().TakeFinding().has_value());
}

TEST(SimulatorTest, AnEventOfTheOldDeviceHasPassed) {
  Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer value(device, 4, "value");
  Event event(device);
  {
    Stream stream(device, "work");
    SetBytes(value.data<char>(), 1, 4, stream);
    stream.Record(event);
  }
  Simulator::Get().Restart({});
  EXPECT_TRUE(event.Passed());
  event.Synchronize();
}

TEST(SimulatorTest, RestartingRefusesALimitBelowWhatIsInUse) {
  Simulator::Get().Restart({});
  const DeviceBuffer held(Device(0), 4096, "held");
  EXPECT_THROW(Simulator::Get().Restart({.memory_bytes = 4095}), Error);
  const DeviceBuffer more(Device(0), 4096, "more");
}

TEST(SimulatorTest, MemoryHasALimit) {
  Simulator::Get().Restart({.memory_bytes = 4096});
  const Device device(0);
  const DeviceBuffer most(device, 4000, "most");
  EXPECT_EQ(device.Memory().free_bytes, 0U);
  EXPECT_EQ(device.Memory().total_bytes, 4096U);
  EXPECT_THROW(DeviceBuffer(device, 1, "one more"), Error);
  const PinnedBuffer pinned(4096, "the host's");  // is not the device's
}

TEST(SimulatorTest, CopiesStayWithinABuffer) {
  Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer buffer(device, 100, "buffer");
  PinnedBuffer host(200, "host");
  Stream stream(device, "work");
  const auto copy = [&](std::size_t first, std::size_t bytes) {
    CopyToDevice(buffer.data<char>() + first, host.data<char>(), bytes, CopyPurpose::kIngest,
                 stream);
  };
  copy(0, 100);
  copy(99, 1);
  const Activity before = ProcessActivity().Read();
  EXPECT_THROW(copy(0, 101), Error);
  EXPECT_THROW(copy(100, 1), Error);
  EXPECT_EQ(ProcessActivity()
                .Read()
                .Since(before)
                .Of(CopyDirection::kHostToDevice, MemoryKind::kPinned, CopyPurpose::kIngest)
                .copies,
            0U)
      << "what is refused is not counted";
  const auto host_copy = [&](std::size_t first, std::size_t bytes) {
    CopyToDevice(buffer.data<char>(), host.data<char>() + first, bytes, CopyPurpose::kIngest,
                 stream);
    CopyToHost(host.data<char>() + first, buffer.data<char>(), bytes, CopyPurpose::kAccount,
               stream);
  };
  host_copy(199, 1);
  EXPECT_THROW(host_copy(199, 2), Error);
  EXPECT_THROW(
      CopyToHost(host.data<char>() + 199, buffer.data<char>(), 2, CopyPurpose::kAccount, stream),
      Error);
  EXPECT_THROW(CopyToHost(host.data<char>(), host.data<char>(), 8, CopyPurpose::kAccount, stream),
               Error);
}

TEST(SimulatorTest, CopiesOfRowsStayWithinABuffer) {
  Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer buffer(device, 100, "buffer");
  const PinnedBuffer host(100, "host");
  Stream stream(device, "work");
  const auto copy = [&](std::size_t to_pitch, std::size_t host_pitch, std::size_t rows) {
    CopyRowsToDevice(buffer.data<char>(), to_pitch, host.data<char>(), host_pitch, 10, rows,
                     CopyPurpose::kIngest, stream);
  };
  copy(10, 10, 10);
  copy(45, 30, 3);
  EXPECT_THROW(copy(46, 30, 3), Error);
  EXPECT_THROW(copy(30, 46, 3), Error);
  EXPECT_THROW(copy(10, 10, 11), Error);
}

TEST(SimulatorTest, CopiesOfRowsComeInPartsToo) {
  int torn = 0;
  testing::ForEachSimSchedule(100, [&torn] {
    const Device device(0);
    const PinnedBuffer from(64, "from"), seen(2, "seen");
    std::memset(from.data<char>(), 2, 64);
    const DeviceBuffer value(device, 128, "value");
    Stream one(device, "one"), two(device, "two");
    SetBytes(value.data<char>(), 1, 128, one);
    one.Synchronize();
    CopyRowsToDevice(value.data<char>(), 16, from.data<char>(), 8, 8, 8, CopyPurpose::kIngest, one);
    // The first row's first byte, then the last one's: that one is never the older unless it was in
    // a later part.
    for (const int i : {0, 1}) {
      CopyToHost(seen.data<char>() + i, value.data<char>() + 112 * i, 1, CopyPurpose::kAccount,
                 two);
    }
    one.Synchronize();
    two.Synchronize();
    if (seen.data<char>()[0] > seen.data<char>()[1]) ++torn;
  });
  EXPECT_GT(torn, 5);
}

TEST(SimulatorTest, ACopyWithinAPinnedRangeStaysThere) {
  Simulator::Get().Restart({});
  const Device device(0);
  std::vector<char> memory(100);
  const DeviceBuffer buffer(device, 100, "buffer");
  Stream stream(device, "work");
  const PinnedRange range(device, memory.data(), 90, "a ring");
  CopyToDevice(buffer.data<char>(), memory.data() + 10, 80, CopyPurpose::kIngest, stream);
  EXPECT_THROW(
      CopyToDevice(buffer.data<char>(), memory.data() + 10, 81, CopyPurpose::kIngest, stream),
      Error);
  stream.Synchronize();
}

TEST(SimulatorTest, ACopyUnderWayWhenItsRangeIsUnpinnedIsFound) {
  Simulator::Get().Restart({});
  const Device device(0);
  std::vector<char> memory(64);
  const DeviceBuffer buffer(device, 64, "buffer");
  Stream stream(device, "work");
  {
    const PinnedRange range(device, memory.data(), 64, "a ring");
    CopyToDevice(buffer.data<char>(), memory.data(), 64, CopyPurpose::kIngest, stream);
  }
  EXPECT_THROW(stream.Synchronize(), Error);
  EXPECT_EQ(Simulator::Get().TakeFinding().value_or(Finding{}).what, Diagnosis::kMemoryGone);
}

// Of a device nothing is known then.
TEST(SimulatorTest, ACopyOfAGraphThatOutlivesItsMemoryIsFound) {
  Simulator::Get().Restart({});
  const Device device(0);
  std::vector<char> memory(64);
  const DeviceBuffer kept(device, 64, "kept");
  Stream stream(device, "work");
  const auto record = [&](const auto& work) {
    Capture capture(stream);
    work();
    return capture.End();
  };
  const auto find = [&](const Graph& graph) {
    stream.Launch(graph);
    EXPECT_THROW(stream.Synchronize(), Error);
    return Simulator::Get().TakeFinding().value_or(Finding{});
  };
  PinnedRange range(device, memory.data(), 64, "a ring");
  DeviceBuffer values(device, 64, "values");
  const Graph copy = record(
      [&] { CopyToDevice(kept.data<char>(), memory.data(), 64, CopyPurpose::kIngest, stream); });
  const Graph fill = record([&] { SetBytes(values.data<char>(), 1, 64, stream); });
  stream.Launch(copy);
  stream.Launch(fill);
  stream.Synchronize();
  range = {};
  values = {};
  const Finding finding = find(copy);
  EXPECT_EQ(finding.what, Diagnosis::kMemoryGone);
  EXPECT_THAT(finding.text, HasSubstr("on stream work touches 64 bytes of pinned memory"));
  EXPECT_EQ(find(fill).what, Diagnosis::kMemoryGone);
}

// A device refuses it and voids the capture.
TEST(SimulatorTest, MemoryGivenBackByAThreadThatCapturesIsFound) {
  Simulator::Get().Restart({});
  const Device device(0);
  Stream stream(device, "captured");
  DeviceBuffer buffer(device, 4, "buffer");
  PinnedBuffer pinned(4, "pinned");
  std::vector<std::byte> memory(4);
  PinnedRange range(device, memory.data(), memory.size(), "range");
  const std::vector<std::function<void()>> ways = {[&] { buffer = {}; }, [&] { pinned = {}; },
                                                   [&] { range = {}; }};
  for (const auto& give_back : ways) {
    Capture capture(stream);
    give_back();
    EXPECT_THROW(capture.End(), Error);
    const Finding finding = Simulator::Get().TakeFinding().value_or(Finding{});
    EXPECT_EQ(finding.what, Diagnosis::kGivenBackInCapture);
    EXPECT_THAT(finding.text, HasSubstr("by the thread that captures stream captured"));
  }
  DeviceBuffer others(device, 4, "others");
  Capture capture(stream);
  std::thread([&] { others = {}; }).join();
  (void)capture.End();
  DeviceBuffer(device, 4, "after it") = {};
  EXPECT_FALSE(Simulator::Get().TakeFinding().has_value());
}

// A writer fills a ring of device memory and records each slot's event anew, lap after lap, while a
// reader on another host thread waits for the same events: its stream behind them, itself by
// polling, and reads what the event promised. ThreadSanitizer watches both.
TEST(SimulatorTest, OneThreadRecordsTheEventsThatAnotherWaitsFor) {
  constexpr int kSlots = 4, kRounds = 200;
  constexpr std::size_t kBytes = 256;
  Simulator::Get().Restart({.schedule = ScheduleFromEnvironment({Order::kRandom, 3})});
  const Device device(0);
  DeviceBuffer ring(device, kSlots * kBytes, "ring");
  std::vector<std::unique_ptr<Event>> written;
  for (int i = 0; i < kSlots; ++i) written.push_back(std::make_unique<Event>(device));
  std::atomic<int> recorded{0}, read{0};
  std::thread writer([&] {  // a plain thread: an Agent would add nothing
    Stream stream(device, "writer");
    for (int i = 0; i < kRounds; ++i) {
      while (i - read.load() >= kSlots - 1) std::this_thread::yield();
      SetBytes(ring.data<char>() + static_cast<std::size_t>(i % kSlots) * kBytes, i % 100, kBytes,
               stream);
      stream.Record(*written[static_cast<std::size_t>(i % kSlots)]);
      recorded.store(i + 1);
      // Asked of while the reader asks, too; the next lap records it again.
      (void)written[static_cast<std::size_t>((i + 1) % kSlots)]->Passed();
    }
    stream.Synchronize();
  });
  Stream stream(device, "reader");
  PinnedBuffer to(kBytes, "to");
  int right = 0;
  for (int i = 0; i < kRounds; ++i) {
    while (recorded.load() <= i) std::this_thread::yield();
    Event& slot = *written[static_cast<std::size_t>(i % kSlots)];
    stream.Wait(slot);
    CopyToHost(to.data<char>(), ring.data<char>() + static_cast<std::size_t>(i % kSlots) * kBytes,
               kBytes, CopyPurpose::kAccount, stream);
    Event copied(device);
    stream.Record(copied);
    while (!copied.Passed()) {
    }
    if (to.data<char>()[kBytes - 1] == i % 100) ++right;
    read.store(i + 1);
  }
  writer.join();
  EXPECT_EQ(right, kRounds);
}

#if defined(__SANITIZE_ADDRESS__)

TEST(SimulatorDeathTest, TheHostMayNotTouchDeviceMemory) {
  Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer buffer(device, 64, "buffer");
  EXPECT_DEATH(*buffer.data<volatile char>() = 1, "use-after-poison");
  Stream stream(device, "work");
  SetBytes(buffer.data<char>(), 0, 64, stream);
  stream.Synchronize();
  EXPECT_DEATH(*buffer.data<volatile char>() = 1, "use-after-poison") << "after an operation";
}
#endif

}  // namespace
}  // namespace tetrion::cuda::sim
