// How rows get into a device's replay: made there by resident lanes (Tetris, packed2, random
// policy), or copied there from pinned memory; a reader gathers windows of them meanwhile. Prints
// one JSON line a figure: steps that lanes have played a second, or lane rows copied.
//   bench_ingest [--quick]   shorter windows
//   bench_ingest --smoke     a few lanes, a few chunks: shows that it runs and that every lane has
//                            an episode to play, gives no figure
//   bench_ingest --check     says what either loop copied between host and device; exit status 1
//                            when one copied what it may not, or when injected copies go unseen
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/resident_loop.h"
#include "bench/envs/windows.h"
#include "lib/core/check.h"
#include "lib/cuda/host_copy_guard.h"

namespace tetrion::bench {
namespace {

using cuda::CopyDirection;
using cuda::CopyPurpose;
using cuda::MemoryKind;

struct Size {
  int lanes, capacity_rows, chunks;  // `chunks` between two waits of the host
  std::uint32_t max_steps;           // of an episode
};

// A loop that is measured and checked: Chunk() brings kChunkRows rows.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual const char* name() const = 0;
  virtual DeviceReplay& replay() = 0;
  virtual void Chunk() = 0;
  // What a figure counts, and how many there were since the last call; waits for all chunks.
  virtual const char* units() const = 0;
  virtual double TakeUnits() = 0;
  // What `chunks` calls of Chunk may copy, given what was seen.
  virtual std::vector<cuda::AllowedCopies> Allowed(int chunks, const cuda::Activity& seen) = 0;
};

class Resident final : public Loop {
 public:
  Resident(const cuda::Device& device, const Size& size)
      : loop_(device, {.record = kPacked2Record,
                       .lanes = size.lanes,
                       .capacity_rows = size.capacity_rows,
                       .max_steps = size.max_steps}) {}
  const char* name() const override { return "resident lanes"; }
  DeviceReplay& replay() override { return loop_.replay(); }
  void Chunk() override { loop_.Chunk(); }
  const char* units() const override { return "steps"; }
  double TakeUnits() override { return loop_.TakeSteps(); }
  // Tokens, drains and weights.
  std::vector<cuda::AllowedCopies> Allowed(int, const cuda::Activity& seen) override {
    std::vector<cuda::AllowedCopies> allowed;
    for (const auto direction : {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
      for (const auto purpose : {CopyPurpose::kAccount, CopyPurpose::kWeights}) {
        allowed.push_back({direction, MemoryKind::kPinned, purpose,
                           seen.Of(direction, MemoryKind::kPinned, purpose).bytes});
      }
    }
    return allowed;
  }

 private:
  ResidentLoop loop_;
};

// Rows of the same shape from pinned memory, always the same ones.
class Dma final : public Loop {
 public:
  Dma(const cuda::Device& device, const RowSpec& row, const Size& size)
      : replay_(device, row, size.capacity_rows),
        source_(kChunkRows * replay_.rows.layout().row_bytes, "rows to copy") {
    std::fill_n(source_.data<std::byte>(), source_.bytes(), std::byte{0});
  }
  const char* name() const override { return "copies from pinned memory"; }
  DeviceReplay& replay() override { return replay_; }

  void Chunk() override {
    int pushed = 0;
    const AcquireResult result = PushRows(replay_.gate, replay_.rows, 0, source_.data<std::byte>(),
                                          kChunkRows, kNanosPerSecond, pushed);
    TETRION_CHECK(result == AcquireResult::kAcquired && pushed == kChunkRows,
                  "nothing holds the writer back");
    pushed_ += pushed;
  }
  const char* units() const override { return "lane rows"; }
  double TakeUnits() override {
    replay_.Synchronize();
    return static_cast<double>(std::exchange(pushed_, 0)) * replay_.rows.layout().spec.lanes;
  }
  // Every byte of every column, once.
  std::vector<cuda::AllowedCopies> Allowed(int chunks, const cuda::Activity&) override {
    const RowSpec& row = replay_.rows.layout().spec;
    const std::uint64_t lane_bytes = row.record_bytes + 4 + 4 + (row.has_mask ? 8 : 0) + 4 + 1 + 8;
    const std::uint64_t row_bytes = sizeof(RowHeader) + row.lanes * lane_bytes;
    return {{CopyDirection::kHostToDevice, MemoryKind::kPinned, CopyPurpose::kIngest,
             static_cast<std::uint64_t>(chunks) * kChunkRows * row_bytes}};
  }

 private:
  DeviceReplay replay_;
  cuda::PinnedBuffer source_;
  std::int64_t pushed_ = 0;  // rows
};

void RunChunks(Loop& loop, int chunks) {
  for (int i = 0; i < chunks; ++i) {
    loop.Chunk();
    loop.replay().Read();
  }
}

void Measure(Loop& loop, const Size& size, const Windows& windows) {
  double turns = 0;
  const auto turn = [&] {
    RunChunks(loop, size.chunks);
    loop.replay().Synchronize();
    ++turns;
    return 1;
  };
  turn();  // what is made once
  (void)loop.TakeUnits();
  Rates rates;
  for (int i = 0; i < windows.count; ++i) {
    turns = 0;
    const double turns_a_s = Window(windows, turn);
    rates.push_back(turns_a_s * loop.TakeUnits() / turns);
  }
  std::cout << R"({"what": "device replay: )" << loop.name() << ", " << size.lanes
            << R"( lanes", "unit": ")" << loop.units() << R"(/s", "ours": {)"
            << Spread(rates).Json() << R"(}, "rival": null, "ratio": null, "target": ""})"
            << std::endl;
}

// What the loop did that it may not, with a copy of the caller's in its midst.
std::vector<std::string> Watch(Loop& loop, int chunks, const std::function<void()>& inject) {
  loop.replay().Synchronize();
  const cuda::HostCopyGuard guard;
  RunChunks(loop, chunks);
  if (inject) inject();
  const std::vector<cuda::AllowedCopies> allowed = loop.Allowed(chunks, guard.Seen());
  std::vector<std::string> violations = guard.Violations(allowed);
  loop.replay().Synchronize();
  if (inject) return violations;
  std::cout << loop.name() << ": " << chunks * kChunkRows << " rows\n";
  for (const cuda::AllowedCopies& copies : allowed) {
    std::cout << "  allowed " << Name(copies.direction) << " of " << Name(copies.kind) << " for "
              << Name(copies.purpose) << ": " << copies.bytes << " bytes\n";
  }
  for (const std::string& violation : violations)
    std::cout << "  NOT ALLOWED: " << violation << "\n";
  return violations;
}

// True when the loop copies what it may and the guard sees what is injected.
bool Check(Loop& loop, int chunks) {
  RunChunks(loop, chunks);  // what is made once
  bool good = Watch(loop, chunks, {}).empty();
  DeviceReplay& replay = loop.replay();
  const std::uint32_t word = 0;
  const cuda::PinnedBuffer pinned(sizeof word, "a word read");
  const auto expect_one = [&](const char* what, const std::function<void()>& inject) {
    const bool seen = Watch(loop, chunks, inject).size() == 1;
    std::cout << "  injected " << what << ": " << (seen ? "reported" : "NOT REPORTED") << "\n";
    good = good && seen;
  };
  expect_one("copy of 4 pageable bytes to the device", [&] {
    cuda::CopyToDevice(replay.batch.data<std::byte>(), &word, sizeof word, CopyPurpose::kIngest,
                       replay.reader);
  });
  expect_one("read of 4 bytes from the device", [&] {
    cuda::CopyToHost(pinned.data<std::byte>(), replay.batch.data<std::byte>(), sizeof word,
                     CopyPurpose::kBatch, replay.reader);
  });
  return good;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (cuda::Device::Count() == 0) {
    std::cout << "no CUDA device: nothing was run\n";
    return mode == "--check" ? 1 : 0;
  }
  const bool small = mode == "--smoke" || mode == "--check";
  const Size size = small
                        ? Size{.lanes = 8, .capacity_rows = 64, .chunks = 4, .max_steps = 3}
                        : Size{.lanes = 4096, .capacity_rows = 512, .chunks = 32, .max_steps = 500};
  const cuda::Device device(0);
  Resident resident(device, size);
  Dma dma(device, resident.replay().rows.layout().spec, size);
  if (mode == "--check") {
    const bool resident_good = Check(resident, size.chunks);
    return Check(dma, size.chunks) && resident_good ? 0 : 1;
  }
  if (mode == "--smoke") {
    bool good = true;
    for (Loop* loop : {static_cast<Loop*>(&resident), static_cast<Loop*>(&dma)}) {
      RunChunks(*loop, size.chunks);
      const double rows = 1.0 * size.chunks * kChunkRows * size.lanes, units = loop->TakeUnits();
      // An episode of max_steps steps is a row longer.
      const double want = loop == &dma ? rows : rows * size.max_steps / (size.max_steps + 1);
      std::cout << loop->name() << ": " << units << " of " << want << " " << loop->units()
                << ", not measured\n";
      good = good && units == want;
    }
    return good ? 0 : 1;
  }
  Windows windows;
  if (mode == "--quick") windows.length_ns = kNanosPerSecond / 10;
  Measure(resident, size, windows);
  Measure(dma, size, windows);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
