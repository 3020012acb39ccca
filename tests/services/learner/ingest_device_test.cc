#include <gtest/gtest.h>

#include "lib/cuda/host_copy_guard.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/services/learner/ingest_fixture.h"

// Ingest into a device's memory: rows go from the ring to their slots by the device's own copies.
namespace tetrion::learner {
namespace {

using cuda::CopyDirection, cuda::CopyPurpose, cuda::MemoryKind;

class IngestDeviceTest : public IngestFixture {
 protected:
  void SetUp() override {
    if (const char* missing = tetrion::testing::DeviceMemory::Missing()) GTEST_SKIP() << missing;
    device_ = std::make_unique<tetrion::testing::DeviceMemory>(layout_.spec, 3, 1024);
    IngestIntoDevice();
  }
  void TearDown() override { agent_.reset(); }  // before the rows

  void IngestIntoDevice() {
    agent_ = std::make_unique<IngestAgent>(
        IngestAgent::Config{
            .action_count = kActions, .check_records = CheckTestRecords, .wait_ns = kNanosPerMilli},
        *replay_, device_->rows(), Bell(&bell_), *attacher_, clock_);
  }

  // Policy versions, which tell the row, of the oldest undelivered window.
  std::vector<std::uint32_t> VersionsOfAWindow() {
    const ReadLease lease = replay_->OpenLease(1, kSteps + 1, 0);
    if (!lease) return {};
    std::vector<std::uint32_t> versions(kSteps + 1);
    device_->rows().GatherVersions(lease, versions.data());
    return versions;
  }
  // Bytes of a row's columns, without the fill between them.
  std::uint64_t ColumnBytes() const {
    const std::uint64_t lane = layout_.spec.record_bytes + 4 + 4 + 4 + 1 + 4 + 4;
    return sizeof(RowHeader) + layout_.spec.lanes * lane;
  }

  std::unique_ptr<tetrion::testing::DeviceMemory> device_;
};

TEST_F(IngestDeviceTest, RowsReachTheDeviceAndWindowsHoldThem) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(10 * kSteps + 4);
  Cycle();
  ASSERT_EQ(RowsIn(0), 10U * kSteps + 4);
  for (std::uint32_t first = 0; first < 10 * kSteps; first += kSteps) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t t = 0; t <= kSteps; ++t) expected.push_back(first + t);
    EXPECT_EQ(VersionsOfAWindow(), expected);
  }
}

// Nothing runs on the simulated device before it is asked: the producer gets no row back that has
// still to be copied.
TEST_F(IngestDeviceTest, RingKeepsItsRowsUntilTheirCopyHasPassed) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  (void)agent_->DoWork();  // attaches
  worker->Write(kSteps);
  (void)agent_->DoWork();
  EXPECT_EQ(RowsIn(0), 4U) << "pushed and committed with an event";
  EXPECT_EQ(agent_->BacklogRows(0), 4U) << "and not given back yet";
  device_->writer().Synchronize();
  (void)agent_->DoWork();
  EXPECT_EQ(agent_->BacklogRows(0), 0U);
}

TEST_F(IngestDeviceTest, EveryByteIsCopiedOnceFromPinnedMemoryAndNoneComesBack) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  Cycle();
  constexpr int kRows = 48;
  const cuda::HostCopyGuard guard;
  for (int i = 0; i < kRows / kSteps; ++i) {
    worker->Write(kSteps);
    Cycle();
  }
  device_->writer().Synchronize();
  ASSERT_EQ(RowsIn(0), static_cast<std::uint64_t>(kRows));
  const cuda::Activity seen = guard.Seen();
  EXPECT_EQ(seen.Of(CopyDirection::kHostToDevice, MemoryKind::kPinned, CopyPurpose::kIngest).bytes,
            kRows * ColumnBytes());
  for (std::size_t purpose = 0; purpose < cuda::kCopyPurposes; ++purpose) {
    const auto p = static_cast<CopyPurpose>(purpose);
    EXPECT_EQ(seen.Of(CopyDirection::kHostToDevice, MemoryKind::kPageable, p).copies, 0U);
    EXPECT_EQ(seen.Of(CopyDirection::kDeviceToHost, MemoryKind::kPinned, p).copies, 0U);
    EXPECT_EQ(seen.Of(CopyDirection::kDeviceToHost, MemoryKind::kPageable, p).copies, 0U);
  }
}

// The mark is made on a copy: the producer's memory stays as it was.
TEST_F(IngestDeviceTest, WorkerThatComesInTheMiddleOfItsEpisodesBeginsThem) {
  Build();
  auto worker = MakeWorker(1);
  worker->Write(8);
  List({{worker->path(), 0}});
  Cycle();
  Build();
  IngestIntoDevice();
  worker->Write(2 * kSteps);
  Cycle();
  const ReadLease lease = replay_->OpenLease(1, kSteps + 1, 0);
  ASSERT_TRUE(lease);
  const int lanes = static_cast<int>(layout_.spec.lanes);
  std::vector<std::uint8_t> flags(static_cast<std::size_t>((kSteps + 1) * lanes), 99);
  device_->rows().Gather(lease, 0, lanes, {.flags = flags.data()});
  for (std::size_t cell = 0; cell < flags.size(); ++cell) {
    EXPECT_EQ(flags[cell], cell < static_cast<std::size_t>(lanes) ? kIsFirst : 0) << cell;
  }
}

TEST_F(IngestDeviceTest, ImpossibleRowIsQuarantinedBeforeItIsCopied) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(kSteps);
  Cycle();
  worker->Write(2, [](RowView& row) { row.action[0] = kActions; });
  Cycle();
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(RowsIn(0), static_cast<std::uint64_t>(kSteps));
}

TEST_F(IngestDeviceTest, RingThatEndsIsUnpinnedAndRemoved) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(3);
  Cycle();
  worker->producer().Close();
  Cycle();
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kClosed);
  EXPECT_EQ(RowsIn(0), 3U);
  EXPECT_FALSE(std::filesystem::exists(worker->path()));
}

}  // namespace
}  // namespace tetrion::learner
