#include <gtest/gtest.h>

#include <deque>

#include "tests/lib/region_v2/compat_world.h"

// The kernel against hosts of other programs, which promise no more than the format does.
namespace tetrion {
namespace {

constexpr std::uint32_t kPong = 0x504F4E47;

// A host by hand: answers with what the format leaves open, plays a streamed episode of any length
// whose observation is its number.
struct ForeignHost {
  explicit ForeignHost(const CompatBytes& memory)
      : command(CompatCommandRing::Attach(memory.span().data() + kCompatCommandRing,
                                          kCompatCommandMagic, kCompatCommandEntries)),
        response(CompatResponseRing::Attach(memory.span().data() + kCompatResponseRing,
                                            kCompatResponseMagic, kCompatCommandEntries)),
        obs(CompatObsRing::Attach(memory.span().data() + kCompatObsRing, kCompatStreamMagic,
                                  kCompatStreamEntries)),
        action(CompatActionRing::Attach(memory.span().data() + kCompatActionRing,
                                        kCompatStreamMagic, kCompatStreamEntries)) {}

  void Observe(std::uint32_t seq) {
    static_cast<void>(obs.Push({.seq = seq, .obs = {static_cast<float>(episode)}, .model_id = 0}));
  }
  void Say(std::uint16_t status, std::uint16_t cmd, std::uint32_t result) {
    static_cast<void>(response.Push(
        {.status = status, .orig_cmd = cmd, .result = result, .timestamp_us = 0xABCD}));
  }
  // Takes one command; whether there was one.
  bool Take() {
    CompatCommand taken;
    if (command.Pop(taken) != CompatRingResult::kOk) return false;
    owed.push_back(taken.cmd);
    return true;
  }
  // Answers the oldest command taken.
  void Answer() {
    const std::uint16_t cmd = owed.front();
    owed.pop_front();
    if (cmd == kCompatEnvReset) {
      ++episode;
      static_cast<void>(action.SkipToHead());
      EXPECT_GE(obs.RewindHead(), 0);
      Observe(0);
    }
    Say(kCompatOk, cmd, cmd == kCompatPing ? ping_result : 0);
  }
  // One look at everything, as a serial host does.
  void Poll() {
    if (Take()) Answer();
    CompatAction taken;
    if (action.Pop(taken) == CompatRingResult::kOk) Observe(taken.seq + 1);
  }

  CompatCommandRing command;
  CompatResponseRing response;
  CompatObsRing obs;
  CompatActionRing action;
  std::deque<std::uint16_t> owed;
  std::uint32_t ping_result = kPong;
  int episode = 0;
};

struct ForeignWorld : CompatWorld {
  ForeignWorld() {
    StartKernel();
    foreign.emplace(memory);
    sleeper.pump = [this] { foreign->Poll(); };
  }
  // Plays a few steps of what must be the host's newest episode.
  void ExpectPlays() {
    CompatObs obs;
    ASSERT_EQ(kernel->Reset(obs), CompatResult::kOk) << kernel->problem();
    for (std::uint32_t seq = 1; seq < 6; ++seq) {
      EXPECT_EQ(obs.obs[0], static_cast<float>(foreign->episode));
      ASSERT_EQ(kernel->Step(1, obs), CompatResult::kOk) << kernel->problem();
      EXPECT_EQ(obs.seq, seq);
    }
  }
  std::optional<ForeignHost> foreign;
};

TEST(CompatForeignTest, PingMayBeAnsweredWithAnyResult) {
  for (const std::uint32_t result : {kPong, 0U, 1U, 0xFFFFFFFFU}) {
    ForeignWorld world;
    world.foreign->ping_result = result;
    EXPECT_EQ(world.kernel->Connect(kNanosPerSecond), CompatResult::kOk);
    world.ExpectPlays();
    world.StartKernel();
    world.ExpectPlays();
    EXPECT_EQ(world.foreign->episode, 2);
  }
}

// Every number of commands that a dead kernel may have left, some of them taken and not answered.
TEST(CompatForeignTest, AnswersToAnEarlierKernelsCommandsAreNotTakenForOnesOwn) {
  for (int left = 0; left <= 4; ++left) {
    for (const bool taken : {false, true}) {
      ForeignWorld world;
      auto dead = CompatCommandRing::Attach(world.memory.span().data(), kCompatCommandMagic,
                                            kCompatCommandEntries);
      for (int i = 0; i < left; ++i) {
        ASSERT_NE(dead.Push({.cmd = kCompatPing, .payload = 1}), CompatRingResult::kFull);
        ASSERT_NE(dead.Push({.cmd = kCompatEnvReset, .payload = 1}), CompatRingResult::kFull);
      }
      if (taken) world.foreign->Take();
      world.sleeper.pump = [&] {
        if (!world.foreign->owed.empty()) return world.foreign->Answer();
        world.foreign->Poll();
      };
      world.StartKernel();
      world.ExpectPlays();
      EXPECT_EQ(world.foreign->episode, left + 1);
      EXPECT_EQ(world.kernel->stats().seq_errors, 0U);
    }
  }
}

// Its tail moves after the answer: with the answer alone the kernel does not know yet.
TEST(CompatForeignTest, HostMayTakeACommandAfterItHasAnsweredIt) {
  ForeignWorld world;
  std::uint32_t& tail = world.memory.ring(kCompatCommandRing).tail;
  const std::uint32_t& head = world.memory.ring(kCompatCommandRing).head;
  bool answered = false;
  world.sleeper.pump = [&] {
    if (answered) tail = (tail + 1) % kCompatCommandEntries;
    if (!std::exchange(answered, !answered && tail != head)) {
      if (answered) world.foreign->Say(kCompatOk, kCompatPing, kPong);
    }
  };
  EXPECT_EQ(world.kernel->Connect(kNanosPerSecond), CompatResult::kOk);
  EXPECT_EQ(tail, head);
}

// The kernel has seen four entries more than it has taken. The reset puts the new episode's first
// in place of the oldest; what lies behind has the seqs that it waits for then.
TEST(CompatForeignTest, ObservationsSentAheadOfAResetAreNotPlayed) {
  ForeignWorld world;
  CompatObs obs;
  ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
  for (const std::uint32_t seq : {1U, 9U, 1U, 2U, 3U}) world.foreign->Observe(seq);
  ASSERT_EQ(world.kernel->Step(1, obs), CompatResult::kOk);
  for (int i = 0; i < 3; ++i) world.ExpectPlays();
  EXPECT_EQ(world.kernel->stats().seq_errors, 0U);
  EXPECT_EQ(world.kernel->stats().dropped, 4U);
}

// The kernel adopts while its host writes the OBS ring's head, wherever that is.
TEST(CompatForeignTest, HeadHalfWrittenAtAdoptionBringsNoStaleObservation) {
  for (int steps = 1; steps < 130; ++steps) {
    ForeignWorld world;
    CompatObs obs;
    ASSERT_EQ(world.kernel->Reset(obs), CompatResult::kOk);
    for (int i = 0; i < steps; ++i) ASSERT_EQ(world.kernel->Step(1, obs), CompatResult::kOk);
    const std::uint32_t head = std::exchange(world.memory.ring(kCompatObsRing).head, 0);
    world.StartKernel();
    world.memory.ring(kCompatObsRing).head = head;
    world.ExpectPlays();
    EXPECT_EQ(world.kernel->stats().seq_errors, 0U);
  }
}

TEST(CompatForeignTest, StatusThatTheFormatDoesNotKnowIsARefusalAndNotDamage) {
  ForeignWorld world;
  world.sleeper.pump = [&] {
    if (world.foreign->Take()) world.foreign->Say(0x8077, kCompatEnvReset, 6);
  };
  CompatObs obs;
  EXPECT_EQ(world.kernel->Reset(obs), CompatResult::kRefused);
  EXPECT_EQ(world.kernel->error_result(), 0U) << "its result means nothing";
  world.sleeper.pump = [&] { world.foreign->Poll(); };
  world.ExpectPlays();
}

}  // namespace
}  // namespace tetrion
