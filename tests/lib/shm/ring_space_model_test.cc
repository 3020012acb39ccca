#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

// A model of "Waking the producer" in spsc_ring.h, run in every order: the consumer gives a full
// ring back record by record and then stops; the producer arms the space bell, looks at tail and
// sleeps. Stores of tail lie in the consumer's store buffer until any later moment, at the latest
// its next locked instruction. Lost: everybody has stopped, the ring is empty and the producer
// sleeps.
namespace tetrion {
namespace {

struct State {
  int word = 0;           // bit 0 armed, above: count
  int memory_tail = 0;    // what the producer can see
  int consumer_tail = 0;  // what the consumer has stored
  int consumer_step = 0;  // 0 release, 1 look, 2 unarm and wake
  int seen_word = 0;
  int producer_step = 0;  // 0 arm, 1 re-check, 2 go to sleep, 3 asleep, 4 done
  int armed = 0;

  auto Key() const {
    return std::tuple(word, memory_tail, consumer_tail, consumer_step, seen_word, producer_step,
                      armed);
  }
};

struct Variant {
  int capacity;
  int quarter;
  bool ring_at_quarters = true;
};

void ConsumerSteps(const State& state, const Variant& variant, std::vector<State>& next) {
  const bool drained = state.memory_tail == state.consumer_tail;
  State s = state;
  if (!drained) {  // the store buffer empties first in, first out
    ++s.memory_tail;
    next.push_back(s);
    s = state;
  }
  if (state.consumer_step == 0 && state.consumer_tail < variant.capacity) {
    ++s.consumer_tail;
    s.consumer_step = 1;
    next.push_back(s);
  } else if (state.consumer_step == 1) {
    const bool locked = variant.ring_at_quarters && state.consumer_tail % variant.quarter == 0;
    if (locked && !drained) return;
    s.seen_word = s.word;
    s.consumer_step = (s.word & 1) != 0 ? 2 : 0;
    next.push_back(s);
  } else if (state.consumer_step == 2 && drained) {
    if (s.word == s.seen_word) {
      ++s.word;
      if (s.producer_step == 3) s.producer_step = 0;
    }
    s.consumer_step = 0;
    next.push_back(s);
  }
}

void ProducerStep(const State& state, std::vector<State>& next) {
  State s = state;
  switch (state.producer_step) {
    case 0:
      s.word |= 1;
      s.armed = s.word;
      s.producer_step = 1;
      break;
    case 1:
      s.producer_step = s.memory_tail > 0 ? 4 : 2;
      break;
    case 2:
      s.producer_step = s.word == s.armed ? 3 : 0;
      break;
    default:
      return;
  }
  next.push_back(s);
}

int LostWakeUps(const Variant& variant) {
  std::vector<State> open = {State{}};
  std::set<decltype(State{}.Key())> met = {State{}.Key()};
  int lost = 0;
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    std::vector<State> next;
    ConsumerSteps(state, variant, next);
    ProducerStep(state, next);
    if (next.empty() && state.producer_step == 3) ++lost;
    for (const State& s : next) {
      if (met.insert(s.Key()).second) open.push_back(s);
    }
  }
  return lost;
}

TEST(RingSpaceModelTest, ProducerNeverSleepsThroughADrainedRing) {
  for (const int capacity : {1, 2, 4, 8, 16}) {
    EXPECT_EQ(LostWakeUps({.capacity = capacity, .quarter = std::max(capacity / 4, 1)}), 0)
        << capacity;
  }
}

TEST(RingSpaceModelTest, PlainLooksAloneWouldLoseWakeUps) {
  EXPECT_GT(LostWakeUps({.capacity = 1, .quarter = 1, .ring_at_quarters = false}), 0);
  EXPECT_GT(LostWakeUps({.capacity = 8, .quarter = 2, .ring_at_quarters = false}), 0);
}

}  // namespace
}  // namespace tetrion
