#include "lib/replay/rows.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/lib/replay/any_window_selector.h"

namespace tetrion {
namespace {

struct FakeEvent final : public Event {
  bool Passed() const override { return false; }
  void Fence() const override { ++fences; }
  mutable int fences = 0;
};

// Keeps nothing; says what it was given, and that it is not done yet.
class SlowMemory final : public ReplayRows {
 public:
  const RowLayout& layout() const override { return layout_; }
  std::uint64_t memory_bytes() const override { return 0; }
  const Event* Write(const Chunk& chunk, const std::byte* src) override {
    chunks.push_back(chunk);
    sources.push_back(src);
    return &event;
  }
  void Gather(const ReadLease&, int, int, const RowColumns&) const override {}
  void GatherVersions(const ReadLease&, std::uint32_t*) const override {}

  FakeEvent event;
  std::vector<Chunk> chunks;
  std::vector<const std::byte*> sources;

 private:
  const RowLayout layout_{{.record_bytes = 8, .lanes = 1, .has_mask = false}};
};

TEST(PushRowsTest, RowsAreCommittedWithTheEventThatTheirMemoryGives) {
  ReplayGate gate({.capacity_rows = 16, .commit_stride = 4},
                  std::make_unique<testing::AnyWindowSelector>(4), Limiter::Unlimited());
  SlowMemory memory;
  const std::vector<std::byte> rows(10 * memory.layout().row_bytes);
  int pushed = 0;
  ASSERT_EQ(PushRows(gate, memory, 0, rows.data(), 10, 0, pushed), AcquireResult::kAcquired);
  EXPECT_EQ(pushed, 10);
  ASSERT_EQ(memory.chunks.size(), 3U);
  EXPECT_EQ(memory.chunks[2].first, 8U);
  EXPECT_EQ(memory.chunks[2].rows, 2);
  EXPECT_EQ(memory.sources[2], rows.data() + 8 * memory.layout().row_bytes);
  const ReadLease lease = gate.OpenLease(1, 4, 0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(memory.event.fences, 1);
}

TEST(PushRowsTest, SaysHowManyRowsWentInAndWhyTheOthersDidNot) {
  ReplayGate gate({.capacity_rows = 16, .commit_stride = 4},
                  std::make_unique<testing::AnyWindowSelector>(16), Limiter::Unlimited());
  SlowMemory memory;
  const std::vector<std::byte> rows(20 * memory.layout().row_bytes);
  int pushed = 0;
  ASSERT_EQ(PushRows(gate, memory, 0, rows.data(), 16, 0, pushed), AcquireResult::kAcquired);
  const ReadLease lease = gate.OpenLease(1, 16, 0);
  EXPECT_EQ(PushRows(gate, memory, 0, rows.data(), 1, 0, pushed), AcquireResult::kLeased);
  EXPECT_EQ(pushed, 0);
}

}  // namespace
}  // namespace tetrion
