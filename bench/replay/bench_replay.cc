// Row 5: the host replay against plain copies of the same bytes in the same order: insert, windows
// in fifo order, windows with uniform starts. Records of 1440 bytes, 16 lanes, windows of 64 steps;
// rates are in lane rows a second. Prints one JSON line a figure.
//   bench_replay [--quick]   256 MiB instead of 1 GiB, shorter windows
//   bench_replay --serve     measures one window of insert, fifo or uniform per line of input and
//                            prints its rate: for rivals in other languages (rivals.py)
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "bench/envs/windows.h"
#include "bench/replay/columns.h"
#include "lib/core/check.h"
#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/uniform.h"

namespace tetrion::bench {
namespace {

constexpr int kLanes = 16, kSteps = 64, kShards = 4, kPushRows = 64;
constexpr RowSpec kRow = {.record_bytes = 1440, .lanes = kLanes, .has_mask = false};

// Draws one window of all lanes at a time, in order or anywhere.
class BenchSelector final : public Selector {
 public:
  void OnCommit(int, std::uint64_t) override {}
  void OnReclaim(int, std::uint64_t) override {}
  void OnGeneration(int, std::uint64_t) override {}
  ItemCounts counts() const override { return {.size = 1}; }
  DrawResult Draw(int, std::span<const ShardRange> ranges,
                  std::vector<tetrion::Window>& out) override {
    if (uniform) return anywhere_.Draw(1, ranges, out);
    const auto shard = static_cast<int>(draws_ % kShards);
    const ShardRange& range = ranges[static_cast<std::size_t>(shard)];
    const std::uint64_t starts = range.hi - range.lo - kSteps;
    const std::uint64_t start = draws_ / kShards * kSteps % starts;
    ++draws_;
    out.push_back({.shard = shard, .start = range.lo + start});
    return {.ready = true, .have = 1, .need = 1};
  }

  bool uniform = false;

 private:
  UniformSelector anywhere_{{.shards = kShards, .window_rows = kSteps + 1}};
  std::uint64_t draws_ = 0;
};

class ReplayBench {
 public:
  explicit ReplayBench(std::uint64_t total_bytes)
      : layout_(kRow),
        capacity_rows_(static_cast<int>(total_bytes / kShards / layout_.row_bytes / 64 * 64)),
        selector_(new BenchSelector),
        gate_({.shards = kShards, .capacity_rows = capacity_rows_, .commit_stride = 8},
              std::unique_ptr<Selector>(selector_), Limiter::Unlimited()),
        rows_(kRow, kShards, capacity_rows_),
        source_(kPushRows * layout_.row_bytes),
        raw_(static_cast<std::size_t>(capacity_rows_) * kShards * layout_.row_bytes),
        raw_batch_((kSteps + 1) * layout_.row_bytes) {
    for (int filled = 0; filled < capacity_rows_ * kShards; filled += kPushRows) {
      (void)PushSome();
      (void)RawPushSome();
    }
  }

  std::uint64_t bytes() const { return rows_.memory_bytes(); }

  double PushSome() {
    const int shard = pushes_++ % kShards;
    Stamp(static_cast<std::uint32_t>(gate_.Stats(shard).written_rows));
    int pushed = 0;
    TETRION_CHECK(PushRows(gate_, rows_, shard, source_.data(), kPushRows, 0, pushed) ==
                      AcquireResult::kAcquired,
                  "nothing holds the writer back");
    return kPushRows * kLanes;
  }
  double RawPushSome() {
    Stamp(static_cast<std::uint32_t>(raw_pushes_));
    const auto shard = static_cast<std::size_t>(raw_pushes_ % kShards);
    const std::size_t row =
        raw_pushes_ / kShards * kPushRows % static_cast<std::size_t>(capacity_rows_);
    std::memcpy(
        raw_.data() + (shard * static_cast<std::size_t>(capacity_rows_) + row) * layout_.row_bytes,
        source_.data(), kPushRows * layout_.row_bytes);
    ++raw_pushes_;
    return kPushRows * kLanes;
  }
  double GatherSome(bool uniform) {
    selector_->uniform = uniform;
    const ReadLease lease = gate_.OpenLease(1, kSteps + 1, 0);
    TETRION_CHECK(static_cast<bool>(lease), "the replay is full of rows");
    columns_.Gather(rows_, lease);
    first_row_ = lease.windows()[0].start;
    return (kSteps + 1) * kLanes;
  }
  // The bound: one copy a row, to where the batch's rows would lie.
  double RawGatherSome(bool uniform) {
    const auto starts = static_cast<std::uint64_t>(capacity_rows_ - kSteps - 1);
    const PhiloxBlock draw = PhiloxDraw(1, raw_draws_, 0, PhiloxPurpose::kSampler);
    const std::uint64_t shard = raw_draws_ % kShards;
    const std::uint64_t start =
        uniform ? draw.word[0] % starts : raw_draws_ / kShards * kSteps % starts;
    ++raw_draws_;
    const std::byte* from =
        raw_.data() +
        (shard * static_cast<std::uint64_t>(capacity_rows_) + start) * layout_.row_bytes;
    for (std::size_t t = 0; t <= kSteps; ++t) {
      std::memcpy(raw_batch_.data() + t * layout_.row_bytes, from + t * layout_.row_bytes,
                  layout_.row_bytes);
    }
    return (kSteps + 1) * kLanes;
  }
  // The last batch holds the rows its lease named.
  void CheckBatch() const {
    for (std::size_t t = 0; t <= kSteps; ++t) {
      TETRION_CHECK(columns_.version()[t] == static_cast<std::uint32_t>(first_row_ + t),
                    "a gathered row is another one");
    }
  }
  double Measure(const std::string& what, const Windows& windows) {
    if (what == "insert") return Window(windows, [this] { return PushSome(); });
    const bool uniform = what == "uniform";
    const double rate = Window(windows, [&] { return GatherSome(uniform); });
    CheckBatch();
    return rate;
  }
  double MeasureRaw(const std::string& what, const Windows& windows) {
    if (what == "insert") return Window(windows, [this] { return RawPushSome(); });
    const bool uniform = what == "uniform";
    return Window(windows, [&] { return RawGatherSome(uniform); });
  }

 private:
  // Row numbers into the rows to be pushed, so that a gathered row can be recognised.
  void Stamp(std::uint32_t first) {
    for (std::uint32_t i = 0; i < kPushRows; ++i) {
      const RowHeader header = {.row = first + i, .policy_version = first + i, .reserved = 0};
      std::memcpy(source_.data() + i * layout_.row_bytes, &header, sizeof header);
    }
  }

  const RowLayout layout_;
  const int capacity_rows_;
  BenchSelector* const selector_;  // owned by gate_
  ReplayGate gate_;
  HostRows rows_;
  std::vector<std::byte> source_;  // rows to push
  Columns columns_{kRow, kSteps + 1, 1};
  std::vector<std::byte> raw_;  // as large as the replay
  std::vector<std::byte> raw_batch_;
  int pushes_ = 0;
  std::uint64_t raw_pushes_ = 0, raw_draws_ = 0, first_row_ = 0;
};

void Compare(ReplayBench& bench, const std::string& what, const std::string& title,
             const Windows& windows) {
  Rates ours, raw, ratio;
  for (int i = 0; i < windows.count; ++i) {
    ours.push_back(bench.Measure(what, windows));
    raw.push_back(bench.MeasureRaw(what, windows));
    ratio.push_back(ours.back() / raw.back());
  }
  std::cout << "{\"what\": \"" << title << "\", \"unit\": \"lane rows/s\", \"ours\": {"
            << Spread(ours).Json() << "}, \"rival\": {\"name\": \"raw copies\", "
            << Spread(raw).Json() << "}, \"ratio\": {" << Spread(ratio).Json()
            << "}, \"target\": \">= 0.85x\"}" << std::endl;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool quick = mode == "--quick";
  ReplayBench bench(std::uint64_t{quick ? 256U : 1024U} << 20);
  const Windows windows = {.count = 5,
                           .length_ns = quick ? kNanosPerSecond / 10 : kNanosPerSecond / 2};
  if (mode == "--serve") {
    std::string what;
    while (std::getline(std::cin, what)) {
      std::cout << std::to_string(bench.Measure(what, windows)) << std::endl;
    }
    return 0;
  }
  const std::string size = std::to_string((bench.bytes() + (1 << 19)) >> 20) + " MiB of 1440 B";
  Compare(bench, "insert", "host replay, " + size + ": insert", windows);
  Compare(bench, "fifo", "host replay, " + size + ": fifo windows 16x64", windows);
  Compare(bench, "uniform", "host replay, " + size + ": uniform windows 16x64", windows);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
