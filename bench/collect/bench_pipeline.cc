// Row 7: the way from actor to learner with a random policy, two processes. A child steps one
// worker's lanes into a real ring; the parent's ingest agent commits the rows to its replay, where
// a reader takes every window. In the same turns each stage alone: the lane loop into a sink that
// keeps nothing, and the hand-off of rows that a child only copies. The rival is the slower of the
// two. Prints JSON lines: rows and environment steps a second. --quick: shorter windows.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "bench/child.h"
#include "bench/envs/windows.h"
#include "bench/replay/columns.h"
#include "lib/collect/lane_loop.h"
#include "lib/collect/ring_sink.h"
#include "lib/core/check.h"
#include "lib/core/log.h"
#include "lib/policy/random_policy.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/shm_dir.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/ring_attacher.h"

namespace tetrion::bench {
namespace {

constexpr std::uint64_t kRunId = 1;
constexpr std::int64_t kWarmUpNs = 50 * kNanosPerMilli;

// Between parent and child, in memory of both.
struct Shared {
  BellBlock bell;  // the ingest agent's
  std::atomic<std::uint64_t> env_steps;
  std::atomic<bool> ready;  // the ring can be attached
  std::atomic<bool> stop;
};

class EndlessTokens final : public TokenSource {
 public:
  explicit EndlessTokens(std::uint32_t max_steps) : max_steps_(max_steps) {}
  TakeResult Take(Token& token, std::int64_t) override {
    token = {.id = next_++, .attempt = 0, .max_steps = max_steps_};
    return TakeResult::kToken;
  }
  TakeResult State() const override { return TakeResult::kToken; }
  void AcceptFence() override {}

 private:
  const std::uint32_t max_steps_;
  std::uint64_t next_ = 0;
};

class NoListener final : public LaneListener {
 public:
  void OnEpisodes(std::span<const EpisodeResult>) override {}
  void OnAbandoned(std::span<const Token>, const char*) override {}
  void OnRow(std::int64_t, std::int64_t) override {}
};

// Rows into as much memory as a ring has, seen by nobody.
class NullSink final : public RowSink {
 public:
  NullSink(const RowLayout& layout, std::size_t rows)
      : layout_(layout),
        capacity_(rows),
        memory_(static_cast<std::byte*>(std::aligned_alloc(64, rows * layout.row_bytes)),
                &std::free) {}
  const RowLayout& layout() const override { return layout_; }
  ClaimResult Claim(RowView& row, std::int64_t) override {
    row = RowView(layout_, memory_.get() + rows_ % capacity_ * layout_.row_bytes);
    return ClaimResult::kRow;
  }
  void Complete() override { ++rows_; }
  void Flush() override {}
  std::uint64_t PublishedRows() const override { return rows_; }

 private:
  const RowLayout layout_;
  const std::size_t capacity_;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory_;
  std::uint64_t rows_ = 0;
};

struct Rate {
  double rows = 0, env_steps = 0;
};

class Pipeline {
 public:
  Pipeline(const std::string& env, std::string dir) : dir_(std::move(dir)) {
    run_.env = env;
    Resolve(run_);
    layout_ = std::make_unique<RowLayout>(RowSpecOf(run_));
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TETRION_CHECK(memory != MAP_FAILED, "a page of shared memory");
    shared_ = new (memory) Shared;
  }

  // The lane loop alone.
  Rate Loop(std::int64_t length_ns) {
    NullSink sink(*layout_, static_cast<std::size_t>(run_.ring_rows));
    const auto loop = MakeLoop(sink);
    const auto run_for = [&](std::int64_t ns) {
      const Deadline deadline(MonotonicClock::Get(), ns);
      while (!deadline.Passed()) {
        for (int i = 0; i < 64; ++i) (void)loop->RunOnce();
      }
    };
    run_for(kWarmUpNs);
    const Count before = {MonotonicClock::Get().NowNs(), loop->counters().rows.load(),
                          loop->counters().env_steps.load()};
    run_for(length_ns);
    return PerSecond(before, {MonotonicClock::Get().NowNs(), loop->counters().rows.load(),
                              loop->counters().env_steps.load()});
  }
  // Everything, or (`copies_only`) the way from the ring on with rows that cost one copy.
  Rate Whole(std::int64_t length_ns, bool copies_only) {
    shared_->env_steps = 0;
    shared_->ready = false;
    shared_->stop = false;
    const std::string path = dir_ + "/" + RingName(kRunId, 1, ++rings_, 0);
    const pid_t child = ForkChild();
    if (child == 0) {
      copies_only ? CopyRows() : PlayRows();
      _exit(0);
    }
    const Deadline deadline = Deadline::AfterMs(10'000);
    while (!shared_->ready.load()) {
      TETRION_CHECK(!deadline.Passed(), "the child makes its ring");
      std::this_thread::yield();
    }
    const Rate rate = Learn(path, length_ns);
    int status = 0;
    TETRION_CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended well");
    return rate;
  }

 private:
  struct Count {
    std::int64_t at_ns = 0;
    std::uint64_t rows = 0, env_steps = 0;
  };
  static Rate PerSecond(const Count& from, const Count& to) {
    const double seconds = static_cast<double>(to.at_ns - from.at_ns) * 1e-9;
    return {static_cast<double>(to.rows - from.rows) / seconds,
            static_cast<double>(to.env_steps - from.env_steps) / seconds};
  }

  std::unique_ptr<LaneLoop> MakeLoop(RowSink& sink) {
    const EnvSpec spec = EnvSpecOf(run_);
    return std::make_unique<LaneLoop>(
        LaneLoopConfig{}, MakeVecEnv(EnvConfigOf(run_)),
        std::make_unique<LocalDecider>(std::make_unique<RandomPolicy>(1, spec.action),
                                       /*weights=*/nullptr, run_.lanes),
        tokens_, sink, listener_);
  }
  RingProducer MakeProducer() {
    const RingSpec spec = {.capacity = static_cast<std::uint64_t>(run_.ring_rows),
                           .record_bytes = layout_->row_bytes,
                           .spec_hash = layout_->Hash()};
    return RingProducer::Create(
        Region::Create(dir_, RingName(kRunId, 1, rings_, 0), RegionKind::kRing,
                       RingRegionBytes(spec), kRunId, spec.spec_hash),
        spec);
  }
  void PlayRows() {
    RingSink sink(*layout_, MakeProducer(), run_.commit_stride);
    sink.SetBell(Bell(&shared_->bell));
    shared_->ready = true;
    const auto loop = MakeLoop(sink);
    while (!shared_->stop.load(std::memory_order_relaxed)) {
      for (int i = 0; i < 16; ++i) (void)loop->RunOnce();
      shared_->env_steps.store(loop->counters().env_steps.load(), std::memory_order_relaxed);
    }
    sink.Close();
  }
  void CopyRows() {
    RingSink sink(*layout_, MakeProducer(), run_.commit_stride);
    sink.SetBell(Bell(&shared_->bell));
    shared_->ready = true;
    NullSink one(*layout_, 1);
    RowView model, row;
    const auto loop = MakeLoop(one);
    (void)loop->RunOnce();  // one row of real reset observations
    (void)one.Claim(model, 0);
    for (std::uint64_t number = 0; !shared_->stop.load(std::memory_order_relaxed);) {
      if (sink.Claim(row, 10 * kNanosPerMilli) != ClaimResult::kRow) continue;
      std::memcpy(static_cast<void*>(row.header), model.header, layout_->row_bytes);
      row.header->row = number++;
      sink.Complete();
    }
    sink.Close();
  }

  // The learner's end: attaches, measures, tells the child to stop and drains its ring.
  Rate Learn(const std::string& path, std::int64_t length_ns) {
    ReplayGate replay({.capacity_rows = run_.replay_rows, .commit_stride = run_.commit_stride},
                      std::make_unique<FifoSelector>(1, run_.window),
                      FifoLimiter(run_.batch_windows));
    HostRows memory(layout_->spec, 1, run_.replay_rows);
    learner::RingBoard board;
    learner::StreamBoard streams;
    board.SetList(1, {{.path = path, .slot = 0}});
    learner::RingAttacher rings(
        {.run_id = kRunId, .shm_dir = dir_, .shards = 1, .layout = *layout_}, board, streams);
    learner::IngestAgent ingest(
        {.action_count = EnvSpecOf(run_).action.count, .wait_ns = kNanosPerMilli}, replay, memory,
        Bell(&shared_->bell), rings);
    std::atomic<bool> done{false};
    std::thread reader([&] {
      Columns columns(layout_->spec, run_.window + 1, run_.batch_windows);
      while (!done.load()) {
        const ReadLease lease =
            replay.OpenLease(run_.batch_windows, run_.window + 1, 50 * kNanosPerMilli);
        if (lease) columns.Gather(memory, lease);
      }
    });
    const auto run_for = [&](std::int64_t ns) {
      const Deadline deadline(MonotonicClock::Get(), ns);
      while (!deadline.Passed()) (void)ingest.DoWork();
      return Count{MonotonicClock::Get().NowNs(), replay.Stats(0).committed_rows,
                   shared_->env_steps.load()};
    };
    const Count before = run_for(kWarmUpNs);
    const Count after = run_for(length_ns);
    shared_->stop = true;
    const Deadline deadline = Deadline::AfterMs(10'000);
    while (board.Ended().empty() && !deadline.Passed()) (void)ingest.DoWork();
    done = true;
    reader.join();
    TETRION_CHECK(board.Ended().size() == 1 && board.Ended()[0].end == wire::RingEnd::kClosed,
                  "the ring was closed");
    TETRION_CHECK(ingest.counters().quarantined.load() == 0, "every row was in order");
    return PerSecond(before, after);
  }

  RunConfig run_;
  const std::string dir_;
  std::unique_ptr<RowLayout> layout_;
  Shared* shared_;
  EndlessTokens tokens_{500};
  NoListener listener_;
  std::uint32_t rings_ = 0;
};

void Print(const std::string& what, const std::string& unit, const Rates& ours,
           const std::string& rival_name, const Rates& rival, const std::string& target) {
  Rates ratio;
  for (std::size_t i = 0; i < rival.size(); ++i) ratio.push_back(ours[i] / rival[i]);
  std::printf("{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": {%s}", what.c_str(), unit.c_str(),
              Spread(ours).Json().c_str());
  if (rival.empty()) {
    std::printf(", \"rival\": null, \"ratio\": null, \"target\": null}\n");
  } else {
    std::printf(", \"rival\": {\"name\": \"%s\", %s}, \"ratio\": {%s}, \"target\": \"%s\"}\n",
                rival_name.c_str(), Spread(rival).Json().c_str(), Spread(ratio).Json().c_str(),
                target.c_str());
  }
  std::fflush(stdout);
}

void Bench(const std::string& env, const std::string& dir, const Windows& windows) {
  Pipeline pipeline(env, dir);
  Rates rows, steps, loop_rows, ring_rows, slower;
  for (int i = 0; i < windows.count; ++i) {
    const Rate whole = pipeline.Whole(windows.length_ns, /*copies_only=*/false);
    const Rate loop = pipeline.Loop(windows.length_ns);
    const Rate ring = pipeline.Whole(windows.length_ns, /*copies_only=*/true);
    rows.push_back(whole.rows);
    steps.push_back(whole.env_steps);
    loop_rows.push_back(loop.rows);
    ring_rows.push_back(ring.rows);
    slower.push_back(std::min(loop.rows, ring.rows));
  }
  const std::string what = "pipeline, 2 processes, " + env + ": ";
  Print(what + "committed", "rows/s", rows, "slower stage alone", slower, ">= 0.6x");
  Print(what + "environment", "steps/s", steps, "", {}, "");
  Print(what + "lane loop alone", "rows/s", loop_rows, "", {}, "");
  Print(what + "ring and ingest alone", "rows/s", ring_rows, "", {}, "");
}

int Main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const Windows windows = {.count = 5,
                           .length_ns = quick ? kNanosPerSecond / 5 : kNanosPerSecond / 2};
  SetUpLogging({.service = "bench", .level = "warn"});
  const char* scratch = std::getenv("TETRION_BENCH_SHM");  // emptied by tools/bench_program.py
  std::string dir = std::string(scratch ? scratch : "/dev/shm") + "/tetrion-bench-XXXXXX";
  TETRION_CHECK(mkdtemp(dir.data()) != nullptr, "a folder for the ring");
  for (const char* env : {"cartpole", "tetris-placement"}) Bench(env, dir, windows);
  std::filesystem::remove_all(dir);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc, argv);
}
