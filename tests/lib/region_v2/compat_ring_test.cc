#include "lib/region_v2/compat_ring.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/lib/region_v2/compat_world.h"

namespace tetrion {
namespace {

constexpr std::uint32_t kSize = kCompatStreamEntries;

// A laid-out ACTION ring with both indices at `start`, and its two ends.
struct Pair {
  explicit Pair(std::uint32_t start = 0, const Clock* real = nullptr) : used(real ? *real : clock) {
    LayOutOrAdoptCompat(memory.span(), true);
    header().head = header().tail = start;
    producer = Attach();
    consumer = Attach();
  }
  CompatRingHeader& header() const { return memory.ring(kCompatActionRing); }
  CompatActionRing Attach() const {
    return CompatActionRing::Attach(memory.span().data() + kCompatActionRing, kCompatStreamMagic,
                                    kSize, used);
  }
  static CompatAction Entry(std::uint32_t seq) {
    return {.seq = seq, .action = static_cast<std::uint16_t>(seq * 7), .ack_seq = ~seq};
  }

  // Pops where the head may have come to rest at 0, which is believed in time.
  CompatRingResult PopSettled(CompatAction& entry) {
    CompatRingResult result = consumer.Pop(entry);
    if (result == CompatRingResult::kEmpty) {
      clock.AdvanceNs(CompatPeerIndex::kDoubtNs);
      result = consumer.Pop(entry);
    }
    return result;
  }

  FakeClock clock;
  const Clock& used;
  CompatBytes memory;
  CompatActionRing producer;
  CompatActionRing consumer;
};

TEST(CompatRingTest, SixtyThreeOfSixtyFourSlotsAreUsableFromEveryOffset) {
  for (std::uint32_t start = 0; start < kSize; ++start) {
    Pair pair(start);
    CompatAction entry;
    ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kEmpty);
    for (std::uint32_t i = 0; i < kSize - 1; ++i) {
      ASSERT_EQ(pair.producer.Space(), CompatRingResult::kOk);
      ASSERT_EQ(pair.producer.Push(Pair::Entry(i)),
                i == 0 ? CompatRingResult::kWasEmpty : CompatRingResult::kOk);
    }
    ASSERT_EQ(pair.producer.Space(), CompatRingResult::kFull);
    ASSERT_EQ(pair.producer.Push(Pair::Entry(99)), CompatRingResult::kFull);
    ASSERT_EQ((pair.header().head + 1) % kSize, pair.header().tail);
    for (std::uint32_t i = 0; i < kSize - 1; ++i) {
      ASSERT_EQ(pair.PopSettled(entry), CompatRingResult::kOk);
      ASSERT_EQ(entry.seq, i);
      ASSERT_EQ(entry.action, Pair::Entry(i).action);
      ASSERT_EQ(entry.ack_seq, ~i);
    }
    ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kEmpty);
    ASSERT_EQ(pair.header().head, pair.header().tail);
  }
}

TEST(CompatRingTest, CommandRingHoldsOneLessThan1024) {
  Pair pair;
  auto producer = CompatCommandRing::Attach(pair.memory.span().data(), kCompatCommandMagic,
                                            kCompatCommandEntries);
  int pushed = 0;
  while (producer.Push({.cmd = kCompatPing}) != CompatRingResult::kFull) ++pushed;
  EXPECT_EQ(pushed, 1023);
}

TEST(CompatRingTest, PushSaysWhetherTheConsumerHadTakenEverything) {
  Pair pair(kSize - 1);
  CompatAction entry;
  EXPECT_EQ(pair.producer.Push(Pair::Entry(0)), CompatRingResult::kWasEmpty);
  EXPECT_EQ(pair.producer.Push(Pair::Entry(1)), CompatRingResult::kOk);
  EXPECT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
  EXPECT_EQ(pair.producer.Push(Pair::Entry(2)), CompatRingResult::kOk);
  EXPECT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
  EXPECT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
  EXPECT_EQ(pair.producer.Push(Pair::Entry(3)), CompatRingResult::kWasEmpty);
}

TEST(CompatRingTest, ProducerTakesBackAndConsumerSkipsWhatIsQueued) {
  Pair pair(60);
  for (std::uint32_t i = 0; i < 10; ++i)
    EXPECT_NE(pair.producer.Push(Pair::Entry(i)), CompatRingResult::kFull);
  CompatAction entry;
  ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
  EXPECT_EQ(pair.producer.RewindHead(), 9);
  EXPECT_EQ(pair.header().head, 61U);
  ASSERT_EQ(pair.producer.Push(Pair::Entry(100)), CompatRingResult::kWasEmpty);
  Pair other(3);
  for (std::uint32_t i = 0; i < 63; ++i)
    EXPECT_NE(other.producer.Push(Pair::Entry(i)), CompatRingResult::kFull);
  EXPECT_EQ(other.consumer.SkipToHead(), 63);
  EXPECT_EQ(other.consumer.Pop(entry), CompatRingResult::kEmpty);
}

TEST(CompatRingTest, EndThatAttachesLaterGoesOnAtTheStoredIndices) {
  Pair pair(62);
  for (std::uint32_t i = 0; i < 5; ++i)
    EXPECT_NE(pair.producer.Push(Pair::Entry(i)), CompatRingResult::kFull);
  CompatActionRing heir = pair.Attach();
  ASSERT_EQ(heir.Push(Pair::Entry(5)), CompatRingResult::kOk);
  CompatActionRing reader = pair.Attach();
  for (std::uint32_t i = 0; i < 6; ++i) {
    CompatAction entry;
    ASSERT_EQ(reader.Pop(entry), CompatRingResult::kOk);
    ASSERT_EQ(entry.seq, i);
  }
}

TEST(CompatRingTest, AttachRefusesWhatIsNoRingOfThisSize) {
  Pair pair;
  const CompatRingHeader good = pair.header();
  const auto refused = [&](auto&& damage) {
    pair.header() = good;
    damage(pair.header());
    return !pair.Attach().valid();
  };
  EXPECT_FALSE(refused([](CompatRingHeader&) {}));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.magic = 0; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.magic = kCompatCommandMagic; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.size = 0; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.size = 63; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.size = 128; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.head = 64; }));
  EXPECT_TRUE(refused([](CompatRingHeader& h) { h.tail = 0xFFFFFFFF; }));
}

TEST(CompatRingTest, PeersImpossibleIndexIsAnErrorAndNeverFollowed) {
  for (const std::uint32_t index : {64U, 65U, 0x80000000U, 0xFFFFFFFFU}) {
    Pair pair(63);
    pair.header().head = index;
    CompatAction entry;
    EXPECT_EQ(pair.consumer.Pop(entry), CompatRingResult::kCorrupt);
    EXPECT_EQ(pair.consumer.SkipToHead(), -1);
    EXPECT_EQ(pair.consumer.tail(), 63U);
    Pair full(63);
    while (full.producer.Push(Pair::Entry(0)) != CompatRingResult::kFull) {
    }
    full.header().tail = index;
    EXPECT_EQ(full.producer.Push(Pair::Entry(0)), CompatRingResult::kCorrupt);
    EXPECT_EQ(full.producer.RewindHead(), -1);
  }
}

TEST(CompatRingTest, SizeIsNotReadAgainAfterAttach) {
  Pair pair;
  pair.header().size = 0xFFFFFFFF;
  for (std::uint32_t i = 0; i < 200; ++i) {
    CompatAction entry;
    ASSERT_EQ(pair.producer.Push(Pair::Entry(i)), CompatRingResult::kWasEmpty);
    ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
    ASSERT_EQ(entry.seq, i);
  }
}

TEST(CompatRingTest, HalfWrittenHeadShowsNoEntryOfTheLapBefore) {
  for (std::uint32_t start = 1; start < kSize - 1; ++start) {
    Pair pair(start);
    pair.header().head = 0;
    CompatAction entry;
    ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kEmpty) << start;
    ASSERT_EQ(pair.header().tail, start) << "taken";
    pair.header().head = start;
    ASSERT_NE(pair.producer.Push(Pair::Entry(start)), CompatRingResult::kFull);
    ASSERT_EQ(pair.consumer.Pop(entry), CompatRingResult::kOk);
    ASSERT_EQ(entry.seq, start);
  }
}

TEST(CompatRingTest, HalfWrittenTailFreesNoSlot) {
  for (std::uint32_t start = 2; start < kSize - 1; ++start) {
    Pair pair(start);
    for (std::uint32_t i = 0; i < kSize - 1; ++i)
      ASSERT_NE(pair.producer.Push(Pair::Entry(i)), CompatRingResult::kFull);
    pair.header().tail = 0;
    ASSERT_EQ(pair.producer.Space(), CompatRingResult::kFull) << start;
    pair.header().tail = (start + 1) % kSize;
    ASSERT_EQ(pair.producer.Push(Pair::Entry(kSize - 1)), CompatRingResult::kOk);
    ASSERT_EQ(pair.producer.Space(), CompatRingResult::kFull);
  }
}

TEST(CompatRingTest, EntryPeekedAtIsTakenOnlyByTakeAndMayBeLookedAtAgain) {
  Pair pair(7);
  CompatAction entry;
  pair.header().head = 20;  // as if written by mistake
  ASSERT_EQ(pair.consumer.Peek(entry), CompatRingResult::kOk);
  EXPECT_EQ(pair.header().tail, 7U);
  pair.header().head = 7;
  EXPECT_EQ(pair.consumer.PeekAgain(entry), CompatRingResult::kEmpty);
  ASSERT_EQ(pair.producer.Push(Pair::Entry(5)), CompatRingResult::kWasEmpty);
  ASSERT_EQ(pair.consumer.PeekAgain(entry), CompatRingResult::kOk);
  EXPECT_EQ(entry.seq, 5U);
  pair.consumer.Take();
  EXPECT_EQ(pair.header().tail, 8U);
  EXPECT_TRUE(pair.consumer.Empty());
}

// Each entry carries its number thrice; the consumer sees all of them, once, in order and whole.
TEST(CompatRingTest, EntriesArriveOnceInOrderAndWholeBetweenTwoThreads) {
  constexpr std::uint32_t kEntries = 200'000;
  Pair pair(17, &MonotonicClock::Get());
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < kEntries;) {
      const CompatRingResult pushed = pair.producer.Push(Pair::Entry(i));
      if (pushed == CompatRingResult::kFull) {
        std::this_thread::yield();
      } else {
        ++i;
      }
    }
  });
  std::uint32_t seen = 0;
  bool whole = true;
  while (seen < kEntries) {
    CompatAction entry;
    if (pair.consumer.Pop(entry) != CompatRingResult::kOk) {
      std::this_thread::yield();
      continue;
    }
    whole = whole && entry.seq == seen && entry.ack_seq == ~seen &&
            entry.action == Pair::Entry(seen).action;
    ++seen;
  }
  producer.join();
  EXPECT_TRUE(whole);
}

}  // namespace
}  // namespace tetrion
