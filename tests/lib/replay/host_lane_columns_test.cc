#include "lib/replay/host_lane_columns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "tests/lib/replay/gathered.h"
#include "tests/lib/replay/scripted_selector.h"

namespace tetrion {
namespace {

// Rows of random bytes in two memories behind one gate, with numbers by lane and without.
class BothWays {
 public:
  BothWays(const RowSpec& row, int shards, int capacity, int stride, std::uint64_t seed)
      : plain_(row, shards, capacity), by_lane_(row, shards, capacity, {}, true), seed_(seed) {
    auto selector = std::make_unique<testing::ScriptedSelector>();
    selector_ = selector.get();
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = shards, .capacity_rows = capacity, .commit_stride = stride},
        std::move(selector), Limiter::Unlimited());
  }

  // `count` random rows into the shard, in chunks of any size; commits them.
  void Push(int shard, int count) {
    while (count > 0) {
      const int most = 1 + static_cast<int>(BoundedDraw(Next(), static_cast<std::uint32_t>(count)));
      const Chunk chunk = gate_->Acquire(shard, most, 0);
      ASSERT_TRUE(static_cast<bool>(chunk));
      std::vector<std::byte> bytes(static_cast<std::size_t>(chunk.rows) *
                                   plain_.layout().row_bytes);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(Next());
      static_cast<void>(plain_.Write(chunk, bytes.data()));
      static_cast<void>(by_lane_.Write(chunk, bytes.data()));
      gate_->Commit(chunk);
      count -= chunk.rows;
    }
    gate_->Flush(shard);
  }

  // Any windows that the shards hold, of a lane or of all; gathers any of their lanes both ways.
  void ExpectEqualGathers(int windows, int rows) {
    const RowSpec& spec = plain_.layout().spec;
    selector_->windows.clear();
    for (int i = 0; i < windows; ++i) {
      const auto shard =
          static_cast<int>(BoundedDraw(Next(), static_cast<std::uint32_t>(gate_->shards())));
      const ShardStats stats = gate_->Stats(shard);
      const auto starts =
          static_cast<std::uint32_t>(stats.valid_rows) - static_cast<std::uint32_t>(rows);
      selector_->windows.push_back(
          {.shard = shard,
           .start = stats.committed_rows - stats.valid_rows + BoundedDraw(Next(), starts + 1),
           .lane = Next() % 4 == 0 ? -1 : static_cast<int>(BoundedDraw(Next(), spec.lanes))});
    }
    const ReadLease lease = gate_->OpenLease(windows, rows, 0);
    ASSERT_TRUE(static_cast<bool>(lease));
    const auto lanes = static_cast<std::uint32_t>(plain_.BatchLanes(lease));
    const auto first = BoundedDraw(Next(), lanes);
    const auto count = 1 + BoundedDraw(Next(), lanes - first);
    const auto gather = [&](const HostRows& memory) {
      testing::Gathered got(spec, rows, static_cast<int>(count));
      memory.Gather(lease, static_cast<int>(first), static_cast<int>(count), got.Columns());
      return got;
    };
    const testing::Gathered want = gather(plain_), got = gather(by_lane_);
    EXPECT_EQ(got.record, want.record);
    EXPECT_EQ(got.action, want.action);
    EXPECT_TRUE(SameBytes(got.log_prob, want.log_prob));  // any bits, NaN as well
    EXPECT_EQ(got.mask, want.mask);
    EXPECT_TRUE(SameBytes(got.reward, want.reward));
    EXPECT_EQ(got.flags, want.flags);
    EXPECT_TRUE(SameBytes(got.cont, want.cont));
    std::vector<std::uint32_t> versions(static_cast<std::size_t>(windows * rows)), same = versions;
    plain_.GatherVersions(lease, versions.data());
    by_lane_.GatherVersions(lease, same.data());
    EXPECT_EQ(same, versions);
  }

  std::uint32_t Next() { return PhiloxDraw(seed_, draws_++, 0, PhiloxPurpose::kSampler).word[0]; }

 private:
  static bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  HostRows plain_, by_lane_;
  testing::ScriptedSelector* selector_ = nullptr;  // owned by gate_
  std::unique_ptr<ReplayGate> gate_;
  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

TEST(HostLaneColumnsTest, WindowsOfAnyShapeAreGatheredAsFromTheRowsThemselves) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PhiloxBlock draw = PhiloxDraw(seed, 0, 0, PhiloxPurpose::kInitialState);
    const int stride = 1 + static_cast<int>(draw.word[0] % 9);
    const int capacity = stride * (3 + static_cast<int>(draw.word[1] % 9));  // 16 divides few
    const int shards = 1 + static_cast<int>(draw.word[2] % 3);
    const RowSpec row = {.record_bytes = 1 + draw.word[3] % 70,
                         .lanes = 1 + (draw.word[3] >> 16) % 20,
                         .has_mask = draw.word[2] % 2 == 0};
    BothWays both(row, shards, capacity, stride, seed);
    for (int turn = 0; turn < 4; ++turn) {  // more than a lap each
      for (int shard = 0; shard < shards; ++shard) both.Push(shard, capacity + 5);
      const int rows =
          1 + static_cast<int>(both.Next() % static_cast<std::uint32_t>(capacity - stride));
      both.ExpectEqualGathers(1 + static_cast<int>(both.Next() % 6), rows);
    }
  }
}

TEST(HostLaneColumnsTest, MemoryOfTheNumbersByLaneIsCounted) {
  constexpr RowSpec kRow = {.record_bytes = 8, .lanes = 3, .has_mask = true};
  const HostRows plain(kRow, 2, 20), by_lane(kRow, 2, 20, {}, true);
  // 2 shards of 2 blocks of 16 rows, 3 lanes of 25 bytes a row; 2 * 20 versions.
  EXPECT_EQ(by_lane.memory_bytes() - plain.memory_bytes(), 2U * 2 * 16 * 3 * 25 + 2 * 20 * 4);
}

}  // namespace
}  // namespace tetrion
