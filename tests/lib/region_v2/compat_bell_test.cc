#include "lib/region_v2/compat_bell.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/lib/region_v2/compat_world.h"

namespace tetrion {
namespace {

struct Words {
  std::uint32_t doorbell = 0;
  std::uint32_t asleep = 0;
  CompatBell bell{doorbell, asleep};
  CompatStats stats;
};

TEST(CompatBellTest, RingsOnTheTransitionFromEmptyOnly) {
  Words words;
  words.bell.Published(true, 0, words.stats);
  words.bell.Published(false, 0, words.stats);
  words.bell.Published(false, 0, words.stats);
  EXPECT_EQ(words.doorbell, 1U);
  EXPECT_EQ(words.stats.doorbells, 1U);
  EXPECT_EQ(words.stats.wakes, 0U) << "nobody sleeps: no system call";
}

TEST(CompatBellTest, BatchRingsOnceForEveryNEntriesAndForTheRestBeforeWaiting) {
  Words words;
  for (int i = 0; i < 10; ++i) words.bell.Published(i == 0, 4, words.stats);
  EXPECT_EQ(words.doorbell, 2U);
  words.bell.Flush(words.stats);
  EXPECT_EQ(words.doorbell, 3U);
  words.bell.Flush(words.stats);
  EXPECT_EQ(words.doorbell, 3U) << "nothing was held back";
}

TEST(CompatBellTest, NudgeChangesTheWordOnceAndOnlyForWhatIsNew) {
  Words words;
  words.bell.Nudge(words.stats);
  EXPECT_EQ(words.doorbell, 0U) << "nothing was published";
  words.bell.Published(true, 0, words.stats);
  words.bell.WakeSleeper(words.stats);
  words.bell.Nudge(words.stats);
  EXPECT_EQ(words.doorbell, 2U);
  EXPECT_EQ(words.stats.wakes, 1U);
  words.bell.Nudge(words.stats);
  EXPECT_EQ(words.doorbell, 2U);
  words.bell.Arm();
  words.bell.Published(true, 0, words.stats);
  words.bell.Nudge(words.stats);
  EXPECT_EQ(words.stats.wakes, 2U) << "the sleeper said so and has been woken already";
}

TEST(CompatBellTest, SleeperIsWokenWhateverTheRingLookedLike) {
  Words words;
  EXPECT_EQ(words.bell.Arm(), 0U);
  EXPECT_EQ(words.asleep, 1U);
  words.bell.Published(false, 0, words.stats);
  EXPECT_EQ(words.doorbell, 1U);
  EXPECT_EQ(words.stats.wakes, 1U);
  words.bell.WakeSleeper(words.stats);
  EXPECT_EQ(words.doorbell, 2U);
  words.bell.Disarm();
  words.bell.WakeSleeper(words.stats);
  EXPECT_EQ(words.doorbell, 2U);
}

TEST(CompatBellTest, CountGoesOnWhereAnEarlierProcessStopped) {
  Words words;
  words.doorbell = 0xFFFFFFFF;
  CompatBell bell(words.doorbell, words.asleep);
  bell.Published(true, 0, words.stats);
  EXPECT_EQ(words.doorbell, 0U);
}

// The model: a producer that pushes two entries and a consumer that takes them, as the few steps of
// CompatRing and CompatBell, run in every order. Plain stores enter a store buffer (one slot per
// word) and reach memory at any later point, at the latest before the process's next locked
// instruction. A lost wake-up is a state in which nobody can move and the consumer sleeps although
// an entry lies in the ring.
constexpr int kModelEntries = 2;

struct ModelVariant {
  bool locked_head = true;    // Push publishes by exchange
  bool locked_asleep = true;  // Arm announces by exchange
  bool re_check = true;       // the consumer looks at the ring between Arm and the sleep
  bool compare_word = true;   // the kernel compares the doorbell word before the sleep
  bool change_word = true;    // a ring changes the word before it wakes
};

struct Model {
  // memory
  int head = 0, tail = 0, doorbell = 0, asleep = 0;
  // store buffers: -1 empty
  int head_buffer = -1, doorbell_buffer = -1, tail_buffer = -1, asleep_buffer = -1;
  int producer = 0;  // 0 publish, 1 look at tail, 2 look at asleep, 3 count, 4 look again, 5 wake
  int pushed = 0;
  bool was_empty = false;
  int consumer = 0;  // 0 look, 1 arm, 2 read the word, 3 re-check, 4 sleep, 5 asleep
  int taken = 0, expected = 0;

  auto Key() const {
    return std::tuple(head, tail, doorbell, asleep, head_buffer, doorbell_buffer, tail_buffer,
                      asleep_buffer, producer, pushed, was_empty, consumer, taken, expected);
  }
  bool ProducerFlushed() const { return head_buffer < 0 && doorbell_buffer < 0; }
  bool ConsumerFlushed() const { return tail_buffer < 0 && asleep_buffer < 0; }
};

void Flush(const Model& m, std::vector<Model>& next) {
  const auto add = [&](int Model::* buffer, int Model::* word) {
    if (m.*buffer < 0) return;
    next.push_back(m);
    next.back().*word = next.back().*buffer;
    next.back().*buffer = -1;
  };
  add(&Model::head_buffer, &Model::head);
  // Stores of one process leave in order: head before doorbell, tail before asleep.
  if (m.head_buffer < 0) add(&Model::doorbell_buffer, &Model::doorbell);
  add(&Model::tail_buffer, &Model::tail);
  if (m.tail_buffer < 0) add(&Model::asleep_buffer, &Model::asleep);
}

void StepProducer(Model m, const ModelVariant& variant, std::vector<Model>& next) {
  const auto done_with_entry = [&] { m.producer = m.pushed < kModelEntries ? 0 : 6; };
  switch (m.producer) {
    case 0:
      if (!m.ProducerFlushed()) return;  // an exchange drains; a plain store waits for its slot
      ++m.pushed;
      (variant.locked_head ? m.head : m.head_buffer) = m.pushed;
      m.producer = 1;
      break;
    case 1:
      m.was_empty = m.tail == m.pushed - 1;
      m.producer = m.was_empty ? 3 : 2;
      break;
    case 2:
      if (m.asleep != 0) {
        m.producer = 3;
      } else {
        done_with_entry();
      }
      break;
    case 3:
      if (m.doorbell_buffer >= 0) return;
      if (variant.change_word) m.doorbell_buffer = m.doorbell + 1;
      m.producer = 4;
      break;
    case 4:
      if (m.asleep != 0) {
        m.producer = 5;
      } else {
        done_with_entry();
      }
      break;
    case 5:  // the system call: everything stored is visible by then
      if (!m.ProducerFlushed()) return;
      if (m.consumer == 5) m.consumer = 0;
      done_with_entry();
      break;
    default:
      return;
  }
  next.push_back(m);
}

void StepConsumer(Model m, const ModelVariant& variant, std::vector<Model>& next) {
  switch (m.consumer) {
    case 0:
    case 3:
      if (m.tail_buffer >= 0) return;
      if (m.head > m.taken) {
        m.tail_buffer = ++m.taken;
        m.consumer = m.taken == kModelEntries ? 6 : 0;
      } else {
        m.consumer = m.consumer == 0 ? 1 : 4;
      }
      break;
    case 1:
      if (variant.locked_asleep ? !m.ConsumerFlushed() : m.asleep_buffer >= 0) return;
      (variant.locked_asleep ? m.asleep : m.asleep_buffer) = 1;
      m.consumer = 2;
      break;
    case 2:
      m.expected = m.doorbell;
      m.consumer = variant.re_check ? 3 : 4;
      break;
    case 4:  // the kernel's compare-and-sleep is one step, after everything stored is visible
      if (!m.ConsumerFlushed()) return;
      m.consumer = variant.compare_word && m.doorbell != m.expected ? 0 : 5;
      break;
    default:
      return;
  }
  next.push_back(m);
}

// Walks every interleaving; returns the number of states with a lost wake-up.
int LostWakeUps(const ModelVariant& variant, std::size_t& states) {
  std::vector<Model> open = {Model{}};
  std::set<decltype(Model{}.Key())> met = {Model{}.Key()};
  int lost = 0;
  while (!open.empty()) {
    const Model state = open.back();
    open.pop_back();
    std::vector<Model> next;
    Flush(state, next);
    StepProducer(state, variant, next);
    StepConsumer(state, variant, next);
    if (next.empty() && state.consumer == 5 && state.head > state.taken) ++lost;
    for (const Model& model : next) {
      if (met.insert(model.Key()).second) open.push_back(model);
    }
  }
  states = met.size();
  return lost;
}

TEST(CompatBellModelTest, NoInterleavingLosesAWakeUp) {
  std::size_t states = 0;
  EXPECT_EQ(LostWakeUps({}, states), 0);
  EXPECT_GT(states, 200U);
}

TEST(CompatBellModelTest, EveryStepOfTheProtocolIsNeeded) {
  std::size_t states = 0;
  EXPECT_GT(LostWakeUps({.locked_head = false}, states), 0);
  EXPECT_GT(LostWakeUps({.locked_asleep = false}, states), 0);
  EXPECT_GT(LostWakeUps({.re_check = false}, states), 0);
  EXPECT_GT(LostWakeUps({.compare_word = false}, states), 0);
  EXPECT_GT(LostWakeUps({.change_word = false}, states), 0);
}

// Sleeps on the doorbell word as the format has it, but does not say so in `asleep`.
class QuietSleeper final : public CompatSleeper {
 public:
  explicit QuietSleeper(std::uint32_t& asleep) : asleep_(asleep) {}
  void Sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
             std::int64_t timeout_ns) override {
    CompatWord(asleep_).store(0, std::memory_order_relaxed);
    static_cast<void>(FutexWait(word, expected, timeout_ns));
  }
  void Yield() override {}

 private:
  std::uint32_t& asleep_;
};

// Every wait goes through the operating system: no spins, naps of a minute, and time-outs that end
// a test whose wake-up was lost.
CompatEndConfig SleepingConfig() {
  CompatEndConfig config;
  config.wait = {.spins = 0,
                 .yields = 0,
                 .first_nap_ns = 60 * kNanosPerSecond,
                 .longest_nap_ns = 60 * kNanosPerSecond,
                 .peer_timeout_ns = 50 * kNanosPerSecond,
                 .answer_timeout_ns = 50 * kNanosPerSecond};
  return config;
}

// As below, with a host that knows nothing of the `asleep` words: a single wake-up that depends on
// them ends in a time-out.
TEST(CompatBellStressTest, HostThatSleepsOnTheWordAloneIsWoken) {
  constexpr int kSteps = 2'000;
  CompatBytes memory;
  CompatEndConfig config = SleepingConfig();
  CompatKernel kernel(memory.span(), config);
  QuietSleeper quiet(memory.doorbell().host_asleep);
  std::thread host_thread([&] {
    CountingEnv env;
    CompatEndConfig host_config = config;
    host_config.sleeper = &quiet;
    CompatHost host(memory.span(), env, host_config, kNanosPerSecond);
    while (host.stats().steps < kSteps && host.Serve(kNanosPerSecond) == CompatResult::kOk) {
    }
  });
  CompatObs obs;
  CompatResult result = kernel.Reset(obs);
  for (int i = 0; i < kSteps && result == CompatResult::kOk; ++i) result = kernel.Step(1, obs);
  EXPECT_EQ(result, CompatResult::kOk) << "a wake-up was lost";
  host_thread.join();
}

// Both ends never spin and nap for up to a minute: every wait goes through the operating system,
// and a single lost wake-up ends in a time-out instead of the next observation.
TEST(CompatBellStressTest, EndsThatAlwaysSleepNeverMissEachOther) {
  constexpr int kSteps = 20'000;
  CompatBytes memory;
  CompatEndConfig config = SleepingConfig();
  for (const std::uint32_t every : {0U, 1U, 3U}) {
    config.doorbell_every = every;
    CompatKernel kernel(memory.span(), config);
    std::atomic<bool> ready{false};
    std::thread host_thread([&] {
      CountingEnv env;
      CompatHost host(memory.span(), env, config, 0);
      ready = true;
      while (host.stats().steps < kSteps && host.Serve(kNanosPerSecond) == CompatResult::kOk) {
      }
    });
    while (!ready) std::this_thread::yield();
    CompatObs obs;
    CompatResult result = kernel.Reset(obs);
    // A new host's greeting may meet the reset.
    if (result == CompatResult::kRefused) result = kernel.Reset(obs);
    for (int i = 0; i < kSteps && result == CompatResult::kOk; ++i) result = kernel.Step(1, obs);
    EXPECT_EQ(result, CompatResult::kOk) << "a wake-up was lost";
    host_thread.join();
  }
}

}  // namespace
}  // namespace tetrion
