// What choosing a window costs, without copying it: a draw of each selector at several numbers of
// shards, the limiter's question, and a lease through the gate (limiter, draw, register, close)
// with the commits that keep it fed. Each is held against the same with 1/64 of the rows: a draw's
// cost must not grow with the capacity. Prints one JSON line a figure.
//   bench_selectors [--quick]   shorter windows
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "bench/envs/windows.h"
#include "lib/core/check.h"
#include "lib/replay/gate.h"
#include "lib/replay/limiter.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/replay/selectors/online.h"
#include "lib/replay/selectors/uniform.h"

namespace tetrion::bench {
namespace {

constexpr int kSteps = 64, kLanes = 16, kStride = 8;
constexpr int kRound = 1024;  // draws between two looks at the clock
constexpr std::uint64_t kManyRows = 1 << 20, kFewRows = kManyRows / 64;  // of all shards

std::unique_ptr<Selector> MakeSelector(std::string_view kind, int shards) {
  const UniformSelector::Config uniform = {
      .shards = shards, .window_rows = kSteps + 1, .lanes = kLanes};
  if (kind == "fifo") return std::make_unique<FifoSelector>(shards, kSteps);
  if (kind == "uniform") return std::make_unique<UniformSelector>(uniform);
  return std::make_unique<OnlineSelector>(OnlineSelector::Config{.uniform = uniform});
}

// Draws of a selector whose shards hold `rows` rows together; what each draw needs is committed
// before a round, outside the measured time. Nothing is reclaimed.
class Draws {
 public:
  Draws(std::string_view kind, int shards, std::uint64_t rows)
      : shards_(shards),
        selector_(MakeSelector(kind, shards)),
        ranges_(static_cast<std::size_t>(shards)) {
    while (committed_ < rows / static_cast<std::uint64_t>(shards)) CommitWindows();
  }
  // Nanoseconds a draw.
  double Measure(const Windows& windows) {
    const Clock& clock = MonotonicClock::Get();
    // So many that the shards never hold 2^32 starts.
    const std::int64_t rounds = windows.length_ns / (kNanosPerMilli / 10);
    std::int64_t passed_ns = 0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (int fresh = 0; fresh < kRound; fresh += shards_) CommitWindows();
      const std::int64_t start_ns = clock.NowNs();
      for (int i = 0; i < kRound; ++i) {
        out_.clear();
        TETRION_CHECK(selector_->Draw(1, ranges_, out_).ready, "there are windows");
      }
      passed_ns += clock.NowNs() - start_ns;
    }
    return static_cast<double>(passed_ns) / static_cast<double>(rounds * kRound);
  }

 private:
  // One more window of each shard.
  void CommitWindows() {
    committed_ += kSteps;
    for (int shard = 0; shard < shards_; ++shard) {
      selector_->OnCommit(shard, committed_ + 1);
      ranges_[static_cast<std::size_t>(shard)] = {.lo = 0, .hi = committed_ + 1};
    }
  }

  const int shards_;
  const std::unique_ptr<Selector> selector_;
  std::vector<ShardRange> ranges_;
  std::vector<tetrion::Window> out_;
  std::uint64_t committed_ = 0;
};

// A window committed and one leased, in turn, shard after shard, once the shards are full.
class Leases {
 public:
  Leases(std::string_view kind, int shards, std::uint64_t rows)
      : shards_(shards),
        gate_({.shards = shards,
               .capacity_rows = static_cast<int>(rows / static_cast<std::uint64_t>(shards)),
               .commit_stride = kStride},
              MakeSelector(kind, shards),
              kind == "fifo" ? Limiter::Unlimited()
                             : Limiter::SamplesPerInsert(1e-3, 1, 1e15, 1e15)) {
    for (std::uint64_t row = 0; row < rows; row += kSteps) CommitWindow();
    while (kind == "fifo" && gate_.OpenLease(1, kSteps + 1, 0)) {
    }
  }
  double Measure(const Windows& windows) {
    const double rate = Window(windows, [this] {
      for (int i = 0; i < shards_; ++i) CommitWindow();
      for (int i = 0; i < shards_; ++i) {
        TETRION_CHECK(static_cast<bool>(gate_.OpenLease(1, kSteps + 1, 0)), "a window is there");
      }
      return shards_;
    });
    return static_cast<double>(kNanosPerSecond) / rate;
  }

 private:
  void CommitWindow() {
    const int shard = next_++ % shards_;
    for (int row = 0; row < kSteps; row += kStride) {
      const Chunk chunk = gate_.Acquire(shard, kStride, 0);
      TETRION_CHECK(static_cast<bool>(chunk), "nothing holds the writer back");
      gate_.Commit(chunk);
    }
  }

  const int shards_;
  ReplayGate gate_;
  int next_ = 0;
};

double MeasureLimiter(const Windows& windows) {
  const Limiter limiter = Limiter::SamplesPerInsert(0.5, 1024, 4096, 4096);
  ItemCounts counts = {.inserted = 4096, .drawn = 1024, .size = 4096};
  std::int64_t yes = 0;
  const double rate = Window(windows, [&] {
    for (int i = 0; i < kRound; ++i) {
      counts.drawn += limiter.MaySample(counts, 1) ? 1 : -1;
      yes += limiter.MayInsert(counts) ? 1 : 0;
    }
    return 2 * kRound;
  });
  TETRION_CHECK(yes > 0, "the writer was let in at times");
  return static_cast<double>(kNanosPerSecond) / rate;
}

// `rival` may be null.
void Print(const std::string& what, const Rates& ours, const Rates& rival, const Rates& ratio) {
  std::cout << "{\"what\": \"" << what << "\", \"unit\": \"ns\", \"ours\": {" << Spread(ours).Json()
            << "}, \"rival\": ";
  if (rival.empty()) {
    std::cout << "null, \"ratio\": null, \"target\": null}" << std::endl;
    return;
  }
  std::cout << "{\"name\": \"1/64 of the rows\", " << Spread(rival).Json() << "}, \"ratio\": {"
            << Spread(ratio).Json() << "}, \"target\": \"<= 1.25x\"}" << std::endl;
}

template <typename Contest>
void Compare(const std::string& what, std::string_view kind, int shards, const Windows& windows) {
  Contest many(kind, shards, kManyRows), few(kind, shards, kFewRows);
  Rates ours, rival, ratio;
  for (int i = 0; i < windows.count; ++i) {
    ours.push_back(many.Measure(windows));
    rival.push_back(few.Measure(windows));
    ratio.push_back(ours.back() / rival.back());
  }
  Print(what, ours, rival, ratio);
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  const Windows windows = {.count = 5, .length_ns = kNanosPerSecond / (quick ? 50 : 5)};
  for (const std::string kind : {"fifo", "uniform", "online"}) {
    for (const int shards : {1, 16, 128}) {
      const std::string where = kind + ", " + std::to_string(shards) + " shards";
      Compare<Draws>("selector " + where + ": a draw", kind, shards, windows);
      Compare<Leases>("gate, " + where + ": 8 chunks committed, a window leased", kind, shards,
                      windows);
    }
  }
  Rates limiter;
  for (int i = 0; i < windows.count; ++i) limiter.push_back(MeasureLimiter(windows));
  Print("limiter: a question", limiter, {}, {});
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
