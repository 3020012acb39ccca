#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/cuda/launch.h"
#include "lib/replay/gate.h"
#include "tests/lib/replay/any_window_selector.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/schedules.h"
#include "tests/lib/replay/tagged_rows.cuh"

// The gate and DeviceRows together, on a device that does its work when it likes: a writer and a
// reader that only enqueue, on a stream each. The property: whatever is gathered, rows and latents
// that were written back, carries the tag of the row that the lease names, while the writer laps
// the ring many times and leases alone hold it up.
namespace tetrion {
namespace {

using testing::DeviceMemory;

constexpr int kCapacity = 16, kStride = 4, kRows = 5, kWindows = 2;
constexpr RowSpec kRow = {.record_bytes = 16, .lanes = 3, .has_mask = true};
constexpr LatentSpec kLatents = {.deter = 8, .stoch = 16};
constexpr int kCells = kRows * kWindows * 3;
constexpr int kMostWrites = 100, kMostReads = 60;

// One thread a cell: latents that say the tag that was gathered with them.
__global__ void MakeLatents(cuda::DeviceSpan<const std::int32_t> actions, LatentColumns out) {
  const unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= actions.size()) return;
  const auto tag = static_cast<std::uint32_t>(actions[cell]);
  for (unsigned i = 0; i < kLatents.deter; ++i) {
    out.deter[cell * kLatents.deter + i] = static_cast<std::uint16_t>(tag + i);
  }
  for (unsigned i = 0; i < kLatents.stoch; ++i) {
    out.stoch[cell * kLatents.stoch + i] = testing::TagByte(static_cast<std::int32_t>(tag), i);
  }
}

// What a read brings back, as it lies on the device and in pinned memory.
struct Results {
  std::byte record[kCells * 16];
  std::uint64_t mask[kCells];
  std::int32_t action[kCells];
  std::uint16_t deter[kCells * kLatents.deter];
  std::uint8_t stoch[kCells * kLatents.stoch];
  std::uint8_t valid[kCells];
};

class LappedReplay {
 public:
  explicit LappedReplay(std::uint64_t seed)
      : seed_(seed),
        gate_({.capacity_rows = kCapacity, .commit_stride = kStride},
              std::make_unique<testing::AnyWindowSelector>(kRows, seed), Limiter::Unlimited()),
        memory_(kRow, 1, kCapacity, kLatents),
        sources_(kMostWrites * kStride * memory_.rows().layout().row_bytes, "rows to copy"),
        batch_(memory_.device(), sizeof(Results), "a batch"),
        latents_(memory_.device(), sizeof(Results), "latents to write back"),
        results_(kMostReads * sizeof(Results), "batches") {}

  void Run(std::uint64_t turns) {
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      const PhiloxBlock draw = PhiloxDraw(seed_, turn, 0, PhiloxPurpose::kInitialState);
      // Each run has a pace of its own for either end.
      const std::uint32_t busy = 2 + static_cast<std::uint32_t>(seed_) % 3;
      const std::uint32_t what = BoundedDraw(draw.word[0], busy + 2);
      if (what == 0) {
        Write(1 + static_cast<int>(BoundedDraw(draw.word[1], kStride)), draw.word[2] % 2 == 0);
      } else if (what <= busy - 1) {
        Read();
      } else {
        static_cast<void>((what == busy ? memory_.writer() : memory_.reader()).Idle());
      }
    }
    lease_.Close();
    memory_.reader().Synchronize();
    memory_.writer().Synchronize();
    for (std::size_t read = 0; read < starts_.size() / kWindows; ++read) Judge(read);
  }

  int wrong() const { return wrong_; }
  int latents_read() const { return latents_read_; }
  std::size_t reads() const { return starts_.size() / kWindows; }
  std::uint64_t rows_written() const { return gate_.Stats(0).written_rows; }

 private:
  static std::int32_t TagOf(std::uint64_t row, int lane) {
    return static_cast<std::int32_t>(row) * 10 + lane;
  }

  // By a kernel or by copies from the host.
  void Write(int most, bool by_kernel) {
    if (writes_ == kMostWrites) return;
    const Chunk chunk = gate_.Acquire(0, most, 0);
    if (!chunk) return;
    DeviceRows& rows = memory_.rows();
    if (by_kernel) {
      rows.ForgetLatents(chunk);
      cuda::Launch(memory_.writer(), testing::WriteTaggedRows, 1, 32, 0, rows.Slots(0), chunk.first,
                   static_cast<std::uint32_t>(chunk.rows), 0);
      gate_.Commit(chunk, rows.Written());
      return;
    }
    const RowLayout& layout = rows.layout();
    std::byte* const source = sources_.data<std::byte>() +
                              static_cast<std::size_t>(writes_++) * kStride * layout.row_bytes;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(chunk.rows); ++i) {
      Fill(RowView(layout, source + i * layout.row_bytes), chunk.first + i);
    }
    gate_.Commit(chunk, rows.Write(chunk, source));
  }
  static void Fill(const RowView& view, std::uint64_t row) {
    *view.header = {row, 0, 0};
    for (int lane = 0; lane < 3; ++lane) {
      const std::int32_t tag = TagOf(row, lane);
      for (std::uint32_t at = 0; at < 16; ++at) {
        view.record[lane * 16 + static_cast<int>(at)] =
            static_cast<std::byte>(testing::TagByte(tag, at));
      }
      view.action[lane] = tag;
      view.mask[lane] = static_cast<std::uint64_t>(tag) << 40;
    }
  }

  // Opens a lease in one turn, enqueues its reads and closes it in another.
  void Read() {
    if (!lease_) {
      if (reads() < kMostReads) lease_ = gate_.OpenLease(kWindows, kRows, 0);
      return;
    }
    auto* const got = batch_.data<Results>();
    auto* const made = latents_.data<Results>();
    DeviceRows& rows = memory_.rows();
    cuda::Stream& stream = memory_.reader();
    constexpr int kLanes = kWindows * 3;
    rows.GatherOnDevice(lease_, 0, kLanes,
                        {.record = got->record, .action = got->action, .mask = got->mask});
    rows.GatherLatentsOnDevice(lease_, {.lanes = kLanes, .rows = kRows},
                               {.deter = got->deter, .stoch = got->stoch, .valid = got->valid});
    cuda::Launch(stream, MakeLatents, 1, 32, 0,
                 cuda::DeviceSpan<const std::int32_t>(got->action, kCells),
                 LatentColumns{.deter = made->deter, .stoch = made->stoch});
    // All but the first row, whose latents the model begins with.
    rows.ScatterLatentsOnDevice(lease_, {.lanes = kLanes, .first_row = 1, .rows = kRows - 1},
                                {.deter = made->deter + kLanes * kLatents.deter,
                                 .stoch = made->stoch + kLanes * kLatents.stoch});
    cuda::CopyToHost(results_.data<Results>() + reads(), got, sizeof *got,
                     cuda::CopyPurpose::kBatch, stream);
    for (const Window& window : lease_.windows()) starts_.push_back(window.start);
    lease_.CloseAfter(rows.LastRead());
  }

  void Judge(std::size_t read) {
    const Results& got = results_.data<Results>()[read];
    for (int cell = 0; cell < kCells; ++cell) {
      const int lane = cell % (kWindows * 3);
      const std::uint64_t start = starts_[read * kWindows + static_cast<std::size_t>(lane / 3)];
      const std::int32_t tag =
          TagOf(start + static_cast<std::uint64_t>(cell / (kWindows * 3)), lane % 3);
      bool right = got.action[cell] == tag && got.mask[cell] == static_cast<std::uint64_t>(tag)
                                                                    << 40;
      for (std::uint32_t at = 0; at < 16; ++at) {
        const std::uint8_t byte = testing::TagByte(tag, at);
        right =
            right && got.record[cell * 16 + static_cast<int>(at)] == static_cast<std::byte>(byte);
        if (got.valid[cell] == 0) continue;
        right = right && got.stoch[cell * 16 + static_cast<int>(at)] == byte &&
                got.deter[cell * 8 + static_cast<int>(at % 8)] ==
                    static_cast<std::uint16_t>(static_cast<std::uint32_t>(tag) + at % 8);
      }
      wrong_ += right && got.valid[cell] <= 1 ? 0 : 1;
      latents_read_ += got.valid[cell] == 1 ? 1 : 0;
    }
  }

  const std::uint64_t seed_;
  ReplayGate gate_;
  DeviceMemory memory_;
  cuda::PinnedBuffer sources_;  // each used once: a copy may be late
  cuda::DeviceBuffer batch_, latents_;
  cuda::PinnedBuffer results_;         // [reads] Results
  std::vector<std::uint64_t> starts_;  // [reads, W]
  ReadLease lease_;
  int writes_ = 0, wrong_ = 0, latents_read_ = 0;
};

class DeviceProtocolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* why = DeviceMemory::Missing()) GTEST_SKIP() << why;
  }
};

TEST_F(DeviceProtocolTest, EveryRowAndLatentCarriesItsTagWhileTheWriterLapsTheReader) {
  int latents_read = 0;
  std::size_t reads = 0, runs = 0;
  testing::ForEachSchedule(500, 100, [&](std::uint64_t run) {
    LappedReplay replay(run);
    replay.Run(400);
    EXPECT_EQ(replay.wrong(), 0);
    EXPECT_GT(replay.reads(), 3U);
    EXPECT_GT(replay.rows_written(), 3U * kCapacity);
    latents_read += replay.latents_read();
    reads += replay.reads();
    ++runs;
  });
#if !defined(__CUDACC__)  // on a device its speed decides how often the reader finds a window
  EXPECT_GT(reads, 10 * runs);
#endif
  EXPECT_GT(static_cast<std::size_t>(latents_read), reads);
}

// A device's compiler would make one addition of the count.
__global__ void CountSlowly(cuda::DeviceSpan<std::uint32_t> out) {
#if defined(__CUDA_ARCH__)
  constexpr long long kCycles = 20'000'000;  // some 10 ms
  for (const long long start = clock64(); clock64() - start < kCycles;) {
  }
  out[0] = 1;
#else
  for (std::uint32_t i = 0; i < 100'000; ++i) out[0] = out[0] + 1;
#endif
}

// The writer's stream is held up behind other work; its rows are committed all the same, and a
// reader that leases them waits for them on its stream.
TEST_F(DeviceProtocolTest, ReaderOfACommitThatIsNotDoneYetWaitsForIt) {
  testing::ForEachSchedule(20, 20, [&](std::uint64_t run) {
    DeviceMemory memory(kRow, 1, kCapacity);
    ReplayGate gate({.capacity_rows = kCapacity, .commit_stride = kStride},
                    std::make_unique<testing::AnyWindowSelector>(kStride, run),
                    Limiter::Unlimited());
    cuda::Stream other(memory.device(), "other");
    cuda::Event held(memory.device());
    const cuda::DeviceBuffer counter(memory.device(), sizeof(std::uint32_t), "counter");
    cuda::SetBytes(counter.data<std::byte>(), 0, counter.bytes(), other);
    cuda::Launch(other, CountSlowly, 1, 1, 0,
                 cuda::DeviceSpan<std::uint32_t>(counter.data<std::uint32_t>(), 1));
    other.Record(held);
    memory.writer().Wait(held);
    const Chunk chunk = gate.Acquire(0, kStride, 0);
    ASSERT_EQ(chunk.rows, kStride);
    cuda::Launch(memory.writer(), testing::WriteTaggedRows, 1, 32, 0, memory.rows().Slots(0),
                 chunk.first, kStride, 0);
    gate.Commit(chunk, memory.rows().Written());
    const ReadLease lease = gate.OpenLease(1, kStride, 0);
    ASSERT_TRUE(lease);
    std::vector<std::int32_t> actions(kStride * 3);
    memory.rows().Gather(lease, 0, 3, {.action = actions.data()});
    for (int cell = 0; cell < kStride * 3; ++cell) {
      EXPECT_EQ(actions[static_cast<std::size_t>(cell)], cell / 3 * 10 + cell % 3);
    }
  });
}

}  // namespace
}  // namespace tetrion
