// Row 5: the host replay against plain copies of the same bytes in the same order, and against
// indexing of torch tensors: insert, windows in fifo order, windows with uniform starts, of all
// lanes together or each of one lane. Records of 1440 bytes, 16 lanes, windows of 64 steps; rates
// are in lane rows a second, of one thread each. Prints one JSON line a figure.
//   bench_replay [--quick]   256 MiB instead of 1 GiB, shorter windows
//   bench_replay --serve     measures one window of insert, fifo, uniform or lanes a line of input,
//                            prints its rate: for rivals in other languages (rivals.py)
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "bench/envs/windows.h"
#include "bench/replay/columns.h"
#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/uniform.h"
#if defined(TETRION_BENCH_TORCH)
#include "bench/replay/torch_rows.h"
#endif

namespace tetrion::bench {
namespace {

constexpr int kLanes = 16, kSteps = 64, kShards = 4, kPushRows = 64;
constexpr RowSpec kRow = {.record_bytes = 1440, .lanes = kLanes, .has_mask = false};

enum class Order { kFifo, kUniform, kLanes };
Order OrderOf(const std::string& what) {
  return what == "fifo" ? Order::kFifo : what == "uniform" ? Order::kUniform : Order::kLanes;
}

// Draws one window of all lanes, in order or anywhere, or 16 anywhere of a lane each.
class BenchSelector final : public Selector {
 public:
  void OnCommit(int, std::uint64_t) override {}
  void OnReclaim(int, std::uint64_t) override {}
  void OnGeneration(int, std::uint64_t) override {}
  ItemCounts counts() const override { return {.size = kLanes}; }
  DrawResult Draw(int count, std::span<const ShardRange> ranges,
                  std::vector<tetrion::Window>& out) override {
    if (order == Order::kUniform) return anywhere_.Draw(count, ranges, out);
    if (order == Order::kLanes) return lanes_.Draw(count, ranges, out);
    const auto shard = static_cast<int>(draws_ % kShards);
    const ShardRange& range = ranges[static_cast<std::size_t>(shard)];
    const std::uint64_t starts = range.hi - range.lo - kSteps;
    const std::uint64_t start = draws_ / kShards * kSteps % starts;
    ++draws_;
    out.push_back({.shard = shard, .start = range.lo + start});
    return {.ready = true, .have = 1, .need = 1};
  }

  Order order = Order::kFifo;

 private:
  UniformSelector anywhere_{{.shards = kShards, .window_rows = kSteps + 1}};
  UniformSelector lanes_{{.shards = kShards, .window_rows = kSteps + 1, .lanes = kLanes}};
  std::uint64_t draws_ = 0;
};

// Memory for raw copies, on huge pages as the replay's is: the rival differs in nothing but code.
class RawMemory {
 public:
  explicit RawMemory(std::size_t bytes)
      : bytes_(AlignUp(bytes, kPageBytes)),
        data_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes_))) {
    TETRION_CHECK(data_ != nullptr, "no memory for the raw copies");
    static_cast<void>(madvise(data_, bytes_, MADV_HUGEPAGE));
    std::memset(data_, 0, bytes_);
  }
  ~RawMemory() { std::free(data_); }
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  static constexpr std::size_t kPageBytes = std::size_t{2} << 20;
  const std::size_t bytes_;
  std::byte* const data_;
};

class ReplayBench {
 public:
  explicit ReplayBench(std::uint64_t total_bytes)
      : layout_(kRow),
        capacity_rows_(static_cast<int>(total_bytes / kShards / layout_.row_bytes / 64 * 64)),
        selector_(new BenchSelector),
        gate_({.shards = kShards, .capacity_rows = capacity_rows_, .commit_stride = 8},
              std::unique_ptr<Selector>(selector_), Limiter::Unlimited()),
        rows_(kRow, kShards, capacity_rows_, {}, true),
        source_(kPushRows * layout_.row_bytes),
        raw_(static_cast<std::size_t>(capacity_rows_) * kShards * layout_.row_bytes),
        raw_batch_((kSteps + 1) * layout_.row_bytes),
        raw_cells_(5 * kCells * sizeof(float)) {
    for (int filled = 0; filled < capacity_rows_ * kShards; filled += kPushRows) {
      (void)PushSome();
      (void)RawPushSome();
    }
  }

  // Of the rows, without their numbers by lane.
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(capacity_rows_) * kShards * layout_.row_bytes;
  }

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
    const std::uint64_t row =
        raw_pushes_ / kShards * kPushRows % static_cast<std::uint64_t>(capacity_rows_);
    std::memcpy(RawRow(raw_pushes_ % kShards, row), source_.data(), kPushRows * layout_.row_bytes);
    ++raw_pushes_;
    return kPushRows * kLanes;
  }
  double GatherSome(Order order) {
    selector_->order = order;
    const bool lanes = order == Order::kLanes;
    const ReadLease lease = gate_.OpenLease(lanes ? kLanes : 1, kSteps + 1, 0);
    TETRION_CHECK(static_cast<bool>(lease), "the replay is full of rows");
    (lanes ? lane_columns_ : columns_).Gather(rows_, lease);
    first_row_ = lease.windows()[0].start;
    return kCells;
  }
  // The bound: one copy a row, to where the batch's rows would lie.
  double RawGatherSome(Order order) {
    if (order == Order::kLanes) return RawGatherLanes();
    const auto starts = static_cast<std::uint64_t>(capacity_rows_ - kSteps - 1);
    const PhiloxBlock draw = PhiloxDraw(1, raw_draws_, 0, PhiloxPurpose::kSampler);
    const std::uint64_t shard = raw_draws_ % kShards;
    const std::uint64_t start =
        order == Order::kUniform ? draw.word[0] % starts : raw_draws_ / kShards * kSteps % starts;
    ++raw_draws_;
    const std::byte* from = RawRow(shard, start);
    for (std::size_t t = 0; t <= kSteps; ++t) {
      std::memcpy(raw_batch_.data() + t * layout_.row_bytes, from + t * layout_.row_bytes,
                  layout_.row_bytes);
    }
    return kCells;
  }
  // 16 windows of a lane each: record by record, cell by cell.
  double RawGatherLanes() {
    const auto starts = static_cast<std::uint64_t>(capacity_rows_ - kSteps - 1);
    for (std::uint32_t w = 0; w < kLanes; ++w) {
      const PhiloxBlock draw = PhiloxDraw(1, raw_draws_, w, PhiloxPurpose::kSampler);
      const std::byte* row = RawRow(draw.word[0] % kShards, draw.word[1] % starts);
      const std::size_t lane = draw.word[2] % kLanes;
      for (std::size_t cell = w; cell < kCells; cell += kLanes, row += layout_.row_bytes) {
        const std::byte* record = row + layout_.record + lane * kRow.record_bytes;
        std::memcpy(raw_batch_.data() + cell * kRow.record_bytes, record, kRow.record_bytes);
        std::byte* to = raw_cells_.data() + cell * sizeof(float);
        for (const std::size_t column :
             {layout_.action, layout_.log_prob, layout_.reward, layout_.cont}) {
          std::memcpy(to, row + column + lane * sizeof(float), sizeof(float));
          to += kCells * sizeof(float);
        }
        *to = row[layout_.flags + lane];
      }
    }
    ++raw_draws_;
    return kCells;
  }
  // The last batch holds the rows its lease named.
  void CheckBatch(Order order) const {
    const bool lanes = order == Order::kLanes;
    const std::vector<std::uint32_t>& version = (lanes ? lane_columns_ : columns_).version();
    for (std::size_t t = 0; t <= kSteps; ++t) {
      TETRION_CHECK(version[t * (lanes ? kLanes : 1)] == static_cast<std::uint32_t>(first_row_ + t),
                    "a gathered row is another one");
    }
  }
  double Measure(const std::string& what, const Windows& windows) {
    if (what == "insert") return Window(windows, [this] { return PushSome(); });
    const Order order = OrderOf(what);
    const double rate = Window(windows, [&] { return GatherSome(order); });
    CheckBatch(order);
    return rate;
  }
  double MeasureRaw(const std::string& what, const Windows& windows) {
    if (what == "insert") return Window(windows, [this] { return RawPushSome(); });
    const Order order = OrderOf(what);
    return Window(windows, [&] { return RawGatherSome(order); });
  }

 private:
  static constexpr std::size_t kCells = std::size_t{kSteps + 1} * kLanes;

  std::byte* RawRow(std::uint64_t shard, std::uint64_t row) const {
    return raw_.data() +
           (shard * static_cast<std::uint64_t>(capacity_rows_) + row) * layout_.row_bytes;
  }
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
  Columns lane_columns_{{.record_bytes = kRow.record_bytes, .lanes = 1}, kSteps + 1, kLanes};
  RawMemory raw_;  // as large as the replay
  std::vector<std::byte> raw_batch_, raw_cells_;
  int pushes_ = 0;
  std::uint64_t raw_pushes_ = 0, raw_draws_ = 0, first_row_ = 0;
};

// Ours and the rival's windows in turn.
void Compare(const std::string& title, const std::string& rival, const std::string& target,
             const Windows& windows, const std::function<double()>& measure,
             const std::function<double()>& measure_rival) {
  Rates ours, theirs, ratio;
  for (int i = 0; i < windows.count; ++i) {
    ours.push_back(measure());
    theirs.push_back(measure_rival());
    ratio.push_back(ours.back() / theirs.back());
  }
  std::cout << "{\"what\": \"" << title << "\", \"unit\": \"lane rows/s\", \"ours\": {"
            << Spread(ours).Json() << "}, \"rival\": {\"name\": \"" << rival << "\", "
            << Spread(theirs).Json() << "}, \"ratio\": {" << Spread(ratio).Json()
            << "}, \"target\": \"" << target << "\"}" << std::endl;
}

void CompareWithRaw(ReplayBench& bench, const std::string& title, const Windows& windows) {
  for (const auto& [what, name] : {std::pair{"insert", "insert"},
                                   {"fifo", "fifo windows 16x64"},
                                   {"uniform", "uniform windows 16x64"},
                                   {"lanes", "uniform windows of a lane each 16x64"}}) {
    Compare(
        title + name, "raw copies", ">= 0.95x", windows,
        [&] { return bench.Measure(what, windows); },
        [&] { return bench.MeasureRaw(what, windows); });
  }
}

void CompareWithTorch([[maybe_unused]] ReplayBench& bench,
                      [[maybe_unused]] const std::string& title,
                      [[maybe_unused]] const Windows& windows) {
#if defined(TETRION_BENCH_TORCH)
  TorchRows torch(bench.bytes(), kRow.record_bytes, kLanes, kSteps + 1);
  for (const auto& [what, uniform] :
       {std::pair{"fifo", false}, {"uniform", true}, {"lanes", true}}) {
    for (const bool select : {true, false}) {
      const std::string order = std::string(what) == "lanes" ? "uniform windows of a lane each"
                                                             : what + std::string(" windows");
      Compare(
          title + order + " 16x64", torch.Name(select), select ? ">= 1.3x" : "", windows,
          [&] { return bench.Measure(what, windows); },
          [&] { return Window(windows, [&] { return torch.Gather(uniform, select); }); });
    }
  }
#endif
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
  CompareWithRaw(bench, "host replay, " + size + ": ", windows);
  CompareWithTorch(bench, "host replay, " + size + ": ", windows);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
