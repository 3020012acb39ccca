#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/shm/shm_dir.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/ring_attacher.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion::learner {

inline constexpr std::uint64_t kRun = 77;
inline constexpr std::int32_t kActions = 3;
inline constexpr int kSteps = 4;  // T of a window; also the commit stride

// As an environment's check of its records: 0xFF in a record's last byte is what no policy could
// decide.
inline const char* CheckTestRecords(const std::byte* records, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (records[16 * i + 15] == std::byte{0xFF}) return "a record is not finite";
  }
  return nullptr;
}

// A worker's end of a real ring. A row holds the worker's number in its records and its own number
// as policy version, so that whoever meets it later can tell where it comes from.
class TestWorker {
 public:
  TestWorker(const std::string& dir, const RowLayout& layout, std::uint32_t worker,
             std::uint64_t capacity = 256, std::uint64_t run = kRun)
      : layout_(layout), worker_(worker), producer_(Make(dir, layout, worker, capacity, run)) {}

  static std::string PathOf(const std::string& dir, std::uint32_t worker,
                            std::uint64_t run = kRun) {
    return dir + "/" + RingName(run, 1, worker, worker);
  }

  // Writes and publishes `count` rows; `spoil` may damage the last of them.
  void Write(int count, void (*spoil)(RowView&) = nullptr) {
    for (int i = 0; i < count; ++i) {
      auto loan = producer_.Claim();
      TETRION_CHECK(loan.ok(), "the test's ring is large enough");
      Fill(loan.record());
      RowView row(layout_, loan.record());
      if (spoil != nullptr && i + 1 == count) spoil(row);
      loan.Complete();
    }
    producer_.Publish();
  }
  RingProducer& producer() { return producer_; }
  RingBlock& block() { return *reinterpret_cast<RingBlock*>(producer_.region()->payload()); }
  std::string path() { return producer_.region()->path(); }

 private:
  static RingProducer Make(const std::string& dir, const RowLayout& layout, std::uint32_t worker,
                           std::uint64_t capacity, std::uint64_t run) {
    const RingSpec spec = {
        .capacity = capacity, .record_bytes = layout.row_bytes, .spec_hash = layout.Hash()};
    return RingProducer::Create(
        Region::Create(dir, RingName(run, 1, worker, worker), RegionKind::kRing,
                       RingRegionBytes(spec), run, spec.spec_hash),
        spec);
  }
  void Fill(std::byte* memory) {
    std::memset(memory, 0, layout_.row_bytes);
    const RowView row(layout_, memory);
    row.header->row = producer_.completed();
    row.header->policy_version = static_cast<std::uint32_t>(producer_.completed());
    for (std::size_t lane = 0; lane < layout_.spec.lanes; ++lane) {
      std::memcpy(row.record + lane * layout_.spec.record_bytes, &worker_, sizeof worker_);
      row.flags[lane] = producer_.completed() == 0 ? kIsFirst : 0;
      row.cont[lane] = 1.0F;
      row.episode_id[lane] = 1;
    }
  }

  const RowLayout& layout_;
  const std::uint32_t worker_;
  RingProducer producer_;
};

// The agent over real rings and a real replay, its cycles called by the test.
class IngestFixture : public ::testing::Test {
 protected:
  IngestFixture() { Build(); }

  // A fresh learner: new replay, new agent; rings and board stay unless the test says otherwise.
  // `batch_windows` sets the limiter: ingest waits at twice as many undelivered windows.
  void Build(int batch_windows = 100, const Clock* clock = nullptr,
             std::int64_t wait_ns = kNanosPerMilli) {
    agent_.reset();
    replay_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 3, .capacity_rows = 1024, .commit_stride = 4},
        std::make_unique<FifoSelector>(3, kSteps), FifoLimiter(batch_windows));
    memory_ = std::make_unique<HostRows>(layout_.spec, 3, 1024);
    const Clock& time = clock == nullptr ? clock_ : *clock;
    attacher_ = MakeAttacher(time);
    agent_ = std::make_unique<IngestAgent>(
        IngestAgent::Config{
            .action_count = kActions, .check_records = CheckTestRecords, .wait_ns = wait_ns},
        *replay_, *memory_, Bell(&bell_), *attacher_, time);
  }
  std::unique_ptr<RingAttacher> MakeAttacher(const Clock& clock) {
    return std::make_unique<RingAttacher>(RingAttacher::Config{.run_id = kRun,
                                                               .shm_dir = dir_.path(),
                                                               .shards = 3,
                                                               .layout = layout_,
                                                               .refused = refused_,
                                                               .remote = remote_board_},
                                          board_, streams_, clock);
  }
  std::unique_ptr<TestWorker> MakeWorker(std::uint32_t worker, std::uint64_t capacity = 256) {
    return std::make_unique<TestWorker>(dir_.path(), layout_, worker, capacity);
  }
  void List(std::vector<std::pair<std::string, int>> rings) {
    std::vector<wire::RingInfo> infos;
    for (auto& [path, slot] : rings) infos.push_back({.path = path, .slot = slot});
    board_.SetList(++revision_, infos);
  }
  // Far more cycles than anything here needs; time moves a dead-owner check further with each.
  void Cycle(int count = 20) {
    for (int i = 0; i < count; ++i) {
      (void)agent_->DoWork();
      clock_.AdvanceMs(60);
    }
  }
  std::uint64_t RowsIn(int slot) const { return replay_->Stats(slot).written_rows; }
  // (worker, row) of every row of the oldest undelivered windows, in their order.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> Deliver(int windows) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> rows;
    ReadLease lease = replay_->OpenLease(windows, kSteps + 1, 0);
    if (!lease) return rows;
    for (const Window& window : lease.windows()) {
      for (std::uint64_t t = 0; t <= kSteps; ++t) {
        const RowView row(layout_, memory_->Row(window.shard, window.start + t));
        std::uint32_t worker = 0;
        std::memcpy(&worker, row.record, sizeof worker);
        rows.emplace_back(worker, row.header->policy_version);
      }
    }
    return rows;
  }

  ScratchDir dir_;
  std::string refused_;  // the attacher's, of the next Build; so is the board
  RemoteBoard* remote_board_ = nullptr;
  const RowLayout layout_{{.record_bytes = 16, .lanes = 2, .has_mask = false}};
  BellBlock bell_ = {};
  FakeClock clock_;
  RingBoard board_;
  std::uint64_t revision_ = 0;
  std::unique_ptr<ReplayGate> replay_;
  std::unique_ptr<HostRows> memory_;
  StreamBoard streams_;
  std::unique_ptr<RingAttacher> attacher_;
  std::unique_ptr<IngestAgent> agent_;
};

}  // namespace tetrion::learner
