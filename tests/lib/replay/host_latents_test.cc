#include "lib/replay/host_latents.h"

#include <gtest/gtest.h>

#include "lib/replay/host_rows.h"
#include "tests/lib/replay/latents_suite.h"

namespace tetrion {
namespace {

class HostLatentMemory {
 public:
  HostLatentMemory(const RowSpec& row, int shards, int capacity_rows, const LatentSpec& spec)
      : rows_(row, shards, capacity_rows, spec) {}
  static const char* Missing() { return nullptr; }
  HostRows& rows() { return rows_; }
  void Close(ReadLease& lease) { lease.Close(); }
  void ScatterLatents(const ReadLease& lease, const BatchPart& part, testing::LatentBatch& in) {
    rows_.ScatterLatents(lease, part, in.Columns());
  }
  void GatherLatents(const ReadLease& lease, const BatchPart& part, testing::LatentBatch& got) {
    rows_.GatherLatents(lease, part, got.Columns());
  }

 private:
  HostRows rows_;
};

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Host, LatentsSuite, HostLatentMemory);
}  // namespace testing

namespace {

TEST(HostLatentsTest, MemoryIsCountedWithTheRows) {
  const HostRows plain(testing::kLatentRow, 2, testing::kLatentCapacity);
  const HostRows rows(testing::kLatentRow, 2, testing::kLatentCapacity,
                      LatentSpec{.deter = 3, .stoch = 5});
  const std::uint64_t cells = 2 * testing::kLatentCapacity * 3;
  EXPECT_EQ(rows.memory_bytes(), plain.memory_bytes() + cells * (2 * 3 + 5 + 1));
}

TEST(HostLatentsDeathTest, RowsWithoutLatentsAndPartsBehindTheBatchAreBugs) {
  HostRows rows(testing::kLatentRow, 2, testing::kLatentCapacity);
  EXPECT_DEATH(rows.GatherLatents({}, {}, {}), "without latents");
  testing::LatentReplay<HostLatentMemory> replay({.deter = 3, .stoch = 5});
  const BatchPart behind = {.lanes = 4, .first_row = 1, .rows = testing::kLatentRows};
  EXPECT_DEATH(replay.Gather(behind), "fewer rows");
  replay.Close();
}

TEST(HostLatentsDeathTest, WriteBackToARowThatAnotherHasReplacedIsABug) {
  const LatentSpec spec = {.deter = 3, .stoch = 5};
  testing::LatentReplay<HostLatentMemory> replay(spec);
  const BatchPart all = {.lanes = 4, .rows = testing::kLatentRows};
  replay.WriteUnasked(1, 12 + testing::kLatentCapacity);
  EXPECT_DEATH(replay.Scatter(all, testing::LatentBatch(spec, 4 * testing::kLatentRows)),
               "another has replaced");
  replay.Close();
}

}  // namespace
}  // namespace tetrion
