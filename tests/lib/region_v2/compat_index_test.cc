#include "lib/region_v2/compat_index.h"

#include <gtest/gtest.h>

#include <thread>

namespace tetrion {
namespace {

using Look = CompatPeerIndex::Look;
constexpr std::uint32_t kMask = 63;

struct Reader {
  // What the other end has stored, and what a look makes of it.
  Look See(std::uint32_t stored) {
    CompatWord(word).store(stored);
    return index.Refresh();
  }
  FakeClock clock;
  std::uint32_t word = 0;
  CompatPeerIndex index{word, kMask, 40, clock};
};

TEST(CompatIndexTest, IndexThatGoesUpIsBelievedAtOnce) {
  Reader reader;
  for (const std::uint32_t stored : {40U, 41U, 50U, 63U}) {
    EXPECT_EQ(reader.See(stored), Look::kSure);
    EXPECT_EQ(reader.index.seen(), stored);
  }
  EXPECT_EQ(reader.See(0), Look::kSure) << "from the last slot to the first";
  EXPECT_EQ(reader.See(0), Look::kSure);
  EXPECT_EQ(reader.See(1), Look::kSure);
}

TEST(CompatIndexTest, ZeroElsewhereIsBelievedOnceItHasStood) {
  Reader reader;
  EXPECT_EQ(reader.See(0), Look::kInDoubt);
  EXPECT_EQ(reader.index.seen(), 40U);
  reader.clock.AdvanceNs(CompatPeerIndex::kDoubtNs - 1);
  EXPECT_EQ(reader.See(0), Look::kInDoubt);
  reader.clock.AdvanceNs(1);
  EXPECT_EQ(reader.See(0), Look::kSure);
  EXPECT_EQ(reader.index.seen(), 0U);
}

TEST(CompatIndexTest, EveryDoubtBeginsAnew) {
  Reader reader;
  for (std::uint32_t stored = 41; stored < 60; ++stored) {
    EXPECT_EQ(reader.See(0), Look::kInDoubt) << "half written";
    reader.clock.AdvanceNs(CompatPeerIndex::kDoubtNs - 1);
    EXPECT_EQ(reader.See(stored), Look::kSure);
  }
  EXPECT_EQ(reader.index.seen(), 59U);
}

TEST(CompatIndexTest, DoubtEndsWithWhatIsForgotten) {
  Reader reader;
  EXPECT_EQ(reader.See(0), Look::kInDoubt);
  reader.index.Forget(5);
  reader.clock.AdvanceNs(CompatPeerIndex::kDoubtNs + 10 * kNanosPerMilli);
  EXPECT_EQ(reader.See(0), Look::kInDoubt) << "a new doubt";
  EXPECT_EQ(reader.index.seen(), 5U);
}

TEST(CompatIndexTest, OtherIndexThatHasWrappedIsBelieved) {
  Reader reader;
  EXPECT_EQ(reader.See(3), Look::kSure);
  EXPECT_EQ(reader.index.seen(), 3U);
}

TEST(CompatIndexTest, IndexBeyondTheRingIsCorruptAndNotKept) {
  Reader reader;
  for (const std::uint32_t stored : {64U, 0xFFFFFFFFU})
    EXPECT_EQ(reader.See(stored), Look::kCorrupt);
  EXPECT_EQ(reader.index.seen(), 40U);
}

// A writer that stores 0 before every index and waits until it has been seen: no look finds more
// than has been written. The clock stands still, so that no delay lends a 0 credit.
TEST(CompatIndexTest, WriterThatZeroesTheWordFirstIsNeverSeenToGoBack) {
  FakeClock clock;
  std::uint32_t word = 0;
  CompatPeerIndex index(word, kMask, 0, clock);
  constexpr std::uint32_t kIndices = 10'000;
  std::atomic<std::uint32_t> written{0}, read{0};
  std::thread writer([&] {
    for (std::uint32_t i = 1; i <= kIndices; ++i) {
      CompatWord(word).store(0);
      CompatWord(word).store(i & kMask);
      written = i;
      while (read < i) std::this_thread::yield();
    }
  });
  std::uint32_t seen = 0;  // free-running
  bool forward = true;
  while (seen < kIndices && forward) {
    const std::uint32_t before = index.seen();
    if (index.Refresh() != Look::kSure || index.seen() == before) {
      std::this_thread::yield();
      continue;
    }
    seen += (index.seen() - before) & kMask;
    forward = seen <= written + 1;
    read = seen;
  }
  if (!forward) read = kIndices;  // lets the writer end
  writer.join();
  EXPECT_TRUE(forward);
}

}  // namespace
}  // namespace tetrion
