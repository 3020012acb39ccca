// Both ends of a stream, in one process.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "lib/inference/env_end.h"
#include "lib/inference/policy_end.h"
#include "lib/shm/shm_dir.h"
#include "lib/weights/learner_region.h"
#include "tests/support/single_step.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kRun = 77;
constexpr int kLanes = 3;
constexpr std::int32_t kActions = 5;
constexpr std::uint64_t kRows = 8;
constexpr std::int32_t kZeros[kLanes] = {};
constexpr float kLogProbs[kLanes] = {-0.5F, -0.5F, -0.5F};
constexpr std::int64_t kSlowNs = 60 * kNanosPerSecond;  // only a hang takes so long

class StreamEndsTest : public ::testing::Test {
 protected:
  StreamEndsTest() : layout_(RowLayout({.record_bytes = 16, .lanes = kLanes}), kRows) {
    char pattern[] = "/tmp/tetrion_stream_XXXXXX";
    dir_ = mkdtemp(pattern);
    path_ = dir_ + "/" + StreamName(kRun, 1, 2, 0);
    EnvEnd::Ends ends = EnvEnd::Create(dir_, StreamName(kRun, 1, 2, 0), kRun, layout_, kActions);
    obs_.emplace(std::move(ends.obs));
    env_end_ = std::move(ends.env_end);
    env_end_->Place({.published = [this] { return obs_->published(); },
                     .set_obs_bell = [this](Bell bell) { obs_->SetBell(bell); },
                     .learner = {.shm_dir = dir_, .run_id = kRun, .spec_hash = 1}});
  }
  ~StreamEndsTest() override { std::filesystem::remove_all(dir_); }

  void PublishRow() {
    RingProducer::Loan loan = obs_->Claim();
    ASSERT_TRUE(loan.ok());
    const RowView row(layout_.row, loan.record());
    std::memset(loan.record(), 0, layout_.row.row_bytes);
    row.header->row = obs_->completed();
    loan.Complete();
    obs_->Publish();
  }
  PolicyEnd Attach() { return PolicyEnd::Attach(path_, layout_.row, kRun, clock_); }
  // The policy's end asks, the environment's end agrees, the policy's end sees it.
  void Handshake(PolicyEnd& policy_end) {
    ASSERT_EQ(policy_end.Poll(), PolicyEnd::State::kAsking);
    ASSERT_EQ(env_end_->Look(0), AnswererState::kReset);
    ASSERT_EQ(policy_end.Poll(), PolicyEnd::State::kStreaming) << policy_end.problem();
    ASSERT_EQ(env_end_->Look(0), AnswererState::kReady);
  }
  void AnswerWith(PolicyEnd& policy_end, std::int32_t action, std::uint32_t version) {
    ASSERT_NE(policy_end.Next(), nullptr);
    std::int32_t actions[kLanes];
    for (int l = 0; l < kLanes; ++l) actions[l] = action + l;
    ASSERT_TRUE(Decide(policy_end, actions, 0, version));
  }
  static bool Decide(PolicyEnd& policy_end, const std::int32_t* actions = kZeros,
                     std::uint32_t flags = 0, std::uint32_t version = 0) {
    return policy_end.Answer(
        {.action = actions, .log_prob = kLogProbs, .policy_version = version, .flags = flags});
  }
  AnswerResult Take(std::uint64_t row) { return env_end_->Take(row, actions_, version_, 0); }
  std::byte* Payload() { return obs_->region()->payload(); }
  // The command ring's producer, for a policy's end that sends what it likes.
  RingProducer Commands() {
    std::optional<RingProducer> raw =
        RingProducer::Adopt(Payload() + layout_.command_ring, layout_.command);
    TETRION_CHECK(raw.has_value(), "the command ring is damaged");
    return std::move(*raw);
  }
  static void Send(RingProducer& commands, std::uint16_t cmd, std::uint64_t epoch) {
    RingProducer::Loan loan = commands.Claim();
    const StreamCommand command = {.cmd = cmd, .epoch = epoch};
    std::memcpy(loan.record(), &command, sizeof command);
    loan.Complete();
    commands.Publish();
  }

  FakeClock clock_;
  std::string dir_, path_;
  StreamLayout layout_;
  std::optional<RingProducer> obs_;
  std::unique_ptr<EnvEnd> env_end_;
  std::int32_t actions_[kLanes] = {};
  std::uint32_t version_ = 0;
};

TEST_F(StreamEndsTest, LayoutKeepsEveryPartApartAndOnItsOwnPage) {
  EXPECT_EQ(layout_.block, AlignUp(RingMemoryBytes(layout_.obs), 4096));
  EXPECT_EQ(layout_.command_ring, layout_.block + 4096);
  EXPECT_GE(layout_.response_ring, layout_.command_ring + RingMemoryBytes(layout_.command));
  EXPECT_GE(layout_.action_ring, layout_.response_ring + RingMemoryBytes(layout_.response));
  EXPECT_GE(layout_.region_bytes,
            kRegionHeaderBytes + layout_.action_ring + RingMemoryBytes(layout_.action));
  EXPECT_EQ(layout_.action.record_bytes, 32U + kLanes * 8U);
  EXPECT_EQ(layout_.log_probs, 32U + kLanes * 4U);
}

TEST_F(StreamEndsTest, NoAnswerComesBeforeAPolicyEndHasAttached) {
  EXPECT_EQ(env_end_->Look(0), AnswererState::kAbsent);
  EXPECT_EQ(Take(0), AnswerResult::kTimeout);
  PolicyEnd policy_end = Attach();
  EXPECT_EQ(policy_end.Next(), nullptr);
  Handshake(policy_end);
}

TEST_F(StreamEndsTest, EveryRowIsAnsweredInPlaceAndInOrderOverManyLaps) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  RingConsumer replay = RingConsumer::Attach(path_, layout_.row.Hash(), {}, RegionKind::kStream);
  for (std::uint64_t row = 0; row < 5 * kRows; ++row) {
    PublishRow();
    ASSERT_EQ(policy_end.next_row(), row);
    AnswerWith(policy_end, static_cast<std::int32_t>(row % 3), static_cast<std::uint32_t>(row));
    EXPECT_EQ(policy_end.answered(), row + 1);
    ASSERT_EQ(Take(row), AnswerResult::kAnswer) << env_end_->problem();
    EXPECT_EQ(actions_[2], static_cast<std::int32_t>(row % 3 + 2));
    EXPECT_EQ(version_, row);
    const RingPeek peek = replay.Peek();
    ASSERT_EQ(peek.status, RingStatus::kOk);
    std::vector<std::byte> copy(peek.records, peek.records + layout_.row.row_bytes);
    EXPECT_EQ(RowView(layout_.row, copy.data()).action[1], static_cast<std::int32_t>(row % 3 + 1));
    replay.Release(1);
  }
}

TEST_F(StreamEndsTest, PolicyEndNeverReleasesARowItself) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    PublishRow();
    AnswerWith(policy_end, 0, 1);
    ASSERT_EQ(Take(row), AnswerResult::kAnswer);
  }
  EXPECT_FALSE(obs_->Claim().ok());
}

TEST_F(StreamEndsTest, NewPolicyEndVoidsQueuedRowsAndGoesOnWithTheNext) {
  {
    PolicyEnd first = Attach();
    Handshake(first);
    PublishRow();
    AnswerWith(first, 1, 9);
    ASSERT_EQ(Take(0), AnswerResult::kAnswer);
    PublishRow();
    AnswerWith(first, 2, 9);  // dies before the environment's end takes it
  }
  PolicyEnd second = Attach();
  ASSERT_EQ(second.Poll(), PolicyEnd::State::kAsking);
  EXPECT_EQ(Take(1), AnswerResult::kReset);  // the answer of the dead is not used
  ASSERT_EQ(second.Poll(), PolicyEnd::State::kStreaming) << second.problem();
  EXPECT_EQ(second.first_row(), 2U);
  EXPECT_EQ(second.Next(), nullptr);
  PublishRow();
  AnswerWith(second, 1, 10);
  ASSERT_EQ(Take(2), AnswerResult::kAnswer);
  EXPECT_EQ(version_, 10U);
}

TEST_F(StreamEndsTest, ResponsesToADeadPolicyEndArePassedOver) {
  {
    PolicyEnd first = Attach();
    (void)first.Poll();
  }
  {
    PolicyEnd second = Attach();
    (void)second.Poll();
  }
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReset);  // answers both
  PolicyEnd third = Attach();
  EXPECT_EQ(third.Poll(), PolicyEnd::State::kAsking);
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReset);
  EXPECT_EQ(third.Poll(), PolicyEnd::State::kStreaming);
}

TEST_F(StreamEndsTest, PolicyEndAsksAgainWhenTheEnvEndStaysSilent) {
  PolicyEnd policy_end = Attach();
  (void)policy_end.Poll();
  (void)policy_end.Poll();
  auto* ring = reinterpret_cast<RingBlock*>(Payload() + layout_.command_ring);
  EXPECT_EQ(ring->head.load(), 1U);
  clock_.AdvanceMs(1001);
  (void)policy_end.Poll();
  EXPECT_EQ(ring->head.load(), 2U);
}

TEST_F(StreamEndsTest, UnknownCommandGetsAnErrorWithTheCommand) {
  RingProducer commands = Commands();
  Send(commands, 0x4711, /*epoch=*/5);
  EXPECT_EQ(env_end_->Look(0), AnswererState::kAbsent);
  RingConsumer responses = RingConsumer::Over(Payload() + layout_.response_ring, layout_.response);
  const RingPeek peek = responses.Peek();
  ASSERT_EQ(peek.status, RingStatus::kOk);
  StreamResponse response;
  std::memcpy(&response, peek.records, sizeof response);
  EXPECT_EQ(response.status, kStreamError);
  EXPECT_EQ(response.result, 0x4711U);
  EXPECT_EQ(response.epoch, 5U);
}

TEST_F(StreamEndsTest, NotFiniteAnswerIsSaid) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  PublishRow();
  ASSERT_NE(policy_end.Next(), nullptr);
  ASSERT_TRUE(Decide(policy_end, kZeros, kActionNotFinite));
  EXPECT_EQ(Take(0), AnswerResult::kNotFinite);
}

TEST_F(StreamEndsTest, SkippedSeqBreaksTheStreamWithBothNumbers) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  PublishRow();
  AnswerWith(policy_end, 0, 1);
  EXPECT_EQ(Take(1), AnswerResult::kBroken);
  EXPECT_NE(env_end_->problem().find("row 0, asked was row 1"), std::string::npos);
}

TEST_F(StreamEndsTest, AnswerThatAcknowledgesAnotherRowBreaksTheStream) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  PublishRow();
  AnswerWith(policy_end, 0, 1);
  auto* answer =
      reinterpret_cast<ActionRecord*>(Payload() + layout_.action_ring + kRingRecordsOffset);
  answer->ack_seq = 1;
  EXPECT_EQ(Take(0), AnswerResult::kBroken);
  EXPECT_NE(env_end_->problem().find("acknowledges row 1 and names row 0"), std::string::npos);
}

class ActionRangeTest : public StreamEndsTest,
                        public ::testing::WithParamInterface<std::int32_t> {};

TEST_P(ActionRangeTest, ActionOutOfRangeBreaksTheStreamAndIsNotPlayed) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  PublishRow();
  ASSERT_NE(policy_end.Next(), nullptr);
  const std::int32_t actions[kLanes] = {1, 1, GetParam()};
  ASSERT_TRUE(Decide(policy_end, actions));
  EXPECT_EQ(Take(0), AnswerResult::kBroken);
  EXPECT_NE(env_end_->problem().find("has action " + std::to_string(GetParam()) + " in lane 2"),
            std::string::npos)
      << env_end_->problem();
  EXPECT_EQ(actions_[0], 0);
}

INSTANTIATE_TEST_SUITE_P(OutOfRange, ActionRangeTest,
                         ::testing::Values(kActions, kActions + 1, -1, -3));

TEST_F(StreamEndsTest, EnvEndThatGoesOnBeyondWhatItPublishedBreaksTheStream) {
  PublishRow();
  PolicyEnd policy_end = Attach();
  (void)policy_end.Poll();
  (void)env_end_->Look(0);
  // The honest answer of the environment's end, spoilt.
  auto* response =
      reinterpret_cast<StreamResponse*>(Payload() + layout_.response_ring + kRingRecordsOffset);
  response->result = 5;
  EXPECT_EQ(policy_end.Poll(), PolicyEnd::State::kBroken);
  EXPECT_NE(policy_end.problem().find("row 5"), std::string::npos);
  EXPECT_EQ(policy_end.Next(), nullptr);
}

TEST_F(StreamEndsTest, RepeatedQuestionIsAnsweredOnce) {
  PolicyEnd policy_end = Attach();
  (void)policy_end.Poll();
  clock_.AdvanceMs(1001);
  (void)policy_end.Poll();  // asked twice before the environment's end looked
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReset);
  EXPECT_EQ(policy_end.Poll(), PolicyEnd::State::kStreaming);
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReady);
  auto* responses = reinterpret_cast<RingBlock*>(Payload() + layout_.response_ring);
  EXPECT_EQ(responses->head.load(), 1U);
}

TEST_F(StreamEndsTest, QuestionThatFoundNoRoomForItsAnswerIsAnsweredWhenItIsRepeated) {
  RingProducer commands = Commands();
  RingConsumer responses = RingConsumer::Over(Payload() + layout_.response_ring, layout_.response);
  for (std::uint64_t epoch = 1; epoch <= kStreamCommands + 1; ++epoch) {
    Send(commands, kStreamReset, epoch);
    ASSERT_EQ(env_end_->Look(0), AnswererState::kReset);
  }
  EXPECT_EQ(env_end_->Look(0), AnswererState::kAbsent) << "its last answer was not sent";
  ASSERT_EQ(responses.Peek().count, kStreamCommands);
  responses.Release(kStreamCommands);
  Send(commands, kStreamReset, kStreamCommands + 1);
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReset);
  EXPECT_EQ(responses.Peek().count, 1U);
  EXPECT_EQ(env_end_->Look(0), AnswererState::kReady);
}

TEST_F(StreamEndsTest, DamagedCommandRingBreaksTheStreamAtOnce) {
  auto* ring = reinterpret_cast<RingBlock*>(Payload() + layout_.command_ring);
  ring->head.store(1000);
  EXPECT_EQ(env_end_->Look(kSlowNs), AnswererState::kBroken);
  EXPECT_NE(env_end_->problem().find("command ring"), std::string::npos);
  EXPECT_EQ(env_end_->Take(0, actions_, version_, kSlowNs), AnswerResult::kBroken);
}

TEST_F(StreamEndsTest, ClosedActionRingBreaksTheStreamAtOnce) {
  auto* ring = reinterpret_cast<RingBlock*>(Payload() + layout_.action_ring);
  ring->closed.store(1);
  EXPECT_EQ(env_end_->Take(0, actions_, version_, kSlowNs), AnswerResult::kBroken);
  EXPECT_NE(env_end_->problem().find("closed"), std::string::npos);
}

TEST_F(StreamEndsTest, DamagedActionRingBreaksTheStreamWhileNobodyIsAttached) {
  auto* ring = reinterpret_cast<RingBlock*>(Payload() + layout_.action_ring);
  ring->head.store(12345);
  EXPECT_EQ(env_end_->Look(kNanosPerSecond), AnswererState::kBroken);
  EXPECT_NE(env_end_->problem().find("ACTION ring"), std::string::npos);
}

TEST_F(StreamEndsTest, AnswersOfAPolicyEndThatNeverAskedKeepNobodyAwake) {
  std::optional<RingProducer> actions =
      RingProducer::Adopt(Payload() + layout_.action_ring, layout_.action);
  ASSERT_TRUE(actions);
  actions->Claim().Complete();
  actions->Publish();
  EXPECT_EQ(env_end_->Look(20 * kNanosPerMilli), AnswererState::kAbsent);
  const auto& block = *reinterpret_cast<const StreamBlock*>(Payload() + layout_.block);
  EXPECT_LE(block.env_bell.word.load() >> 1, 100U) << "looks in 20 ms";
}

TEST_F(StreamEndsTest, DamagedResponseRingBreaksTheStreamWhenItIsNeeded) {
  RingProducer commands = Commands();
  reinterpret_cast<RingBlock*>(Payload() + layout_.response_ring)->tail.store(1000);
  AnswererState state = AnswererState::kReset;
  for (std::uint64_t i = 0; i <= kStreamCommands && state == AnswererState::kReset; ++i) {
    Send(commands, kStreamReset, 100 + i);
    state = env_end_->Look(0);
  }
  EXPECT_EQ(env_end_->Look(0), AnswererState::kBroken);
  EXPECT_NE(env_end_->problem().find("response ring"), std::string::npos);
}

TEST_F(StreamEndsTest, DamagedTailOfTheCommandRingBreaksThePolicyEnd) {
  PolicyEnd policy_end = Attach();
  auto* ring = reinterpret_cast<RingBlock*>(Payload() + layout_.command_ring);
  ring->tail.store(1000);
  for (std::uint64_t i = 0; i <= kStreamCommands; ++i) {
    (void)policy_end.Poll();
    clock_.AdvanceMs(1001);
  }
  EXPECT_EQ(policy_end.state(), PolicyEnd::State::kBroken);
  EXPECT_NE(policy_end.problem().find("command ring"), std::string::npos);
}

TEST_F(StreamEndsTest, ClosedResponseRingBreaksThePolicyEnd) {
  PolicyEnd policy_end = Attach();
  reinterpret_cast<RingBlock*>(Payload() + layout_.response_ring)->closed.store(1);
  EXPECT_EQ(policy_end.Poll(), PolicyEnd::State::kBroken);
  EXPECT_NE(policy_end.problem().find("response ring is marked closed"), std::string::npos);
}

TEST_F(StreamEndsTest, AttachRefusesAnotherLayoutRunOrVersion) {
  const RowLayout other({.record_bytes = 16, .lanes = kLanes + 1});
  EXPECT_THROW(PolicyEnd::Attach(path_, other, kRun), Error);
  EXPECT_THROW(PolicyEnd::Attach(path_, layout_.row, kRun + 1), Error);
  auto* block = reinterpret_cast<StreamBlock*>(Payload() + layout_.block);
  block->version = 3;
  try {
    (void)Attach();
    FAIL() << "version 3 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("version 3, needed is 2"), std::string::npos);
  }
}

TEST_F(StreamEndsTest, AttachRefusesARegionOfAnotherSize) {
  StreamLayout larger = layout_;
  larger.region_bytes += kStreamBlockBytes;
  const std::string name = StreamName(kRun, 1, 2, 1);
  const EnvEnd::Ends ends = EnvEnd::Create(dir_, name, kRun, larger, kActions);
  try {
    (void)PolicyEnd::Attach(dir_ + "/" + name, layout_.row, kRun);
    FAIL() << "a region of another size was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find(std::to_string(layout_.region_bytes) + " are needed"),
              std::string::npos)
        << error.what();
  }
}

// Every byte beside the row ring may be anything: calls return, nothing is touched out of bounds.
TEST_F(StreamEndsTest, HostileContentNeverHangsNorEscapes) {
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  std::byte* const from = Payload() + layout_.block;
  const std::uint64_t words = (layout_.region_bytes - kRegionHeaderBytes - layout_.block) / 8;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const PhiloxBlock draw = PhiloxDraw(5, i, 0, PhiloxPurpose::kSampler);
    const std::uint64_t at = draw.word[0] % words;
    // Small numbers are the interesting cursors.
    const std::uint64_t value = draw.word[3] % 2 == 0
                                    ? draw.word[1] % 20
                                    : (std::uint64_t{draw.word[1]} << 32) | draw.word[2];
    std::memcpy(from + at * 8, &value, 8);
    (void)env_end_->Look(0);
    (void)Take(draw.word[2] % 4);
    (void)policy_end.Poll();
    if (policy_end.Next() != nullptr) (void)Decide(policy_end);
    if (i % 64 == 0) {
      try {
        PolicyEnd again = Attach();
        (void)again.Poll();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kConfig) << error.what();
      }
    }
  }
}

TEST_F(StreamEndsTest, RowsRingTheLearnersBellAlsoAfterItsRegionWasMadeAnew) {
  int bells = 0;
  env_end_->Place({.published = [this] { return obs_->published(); },
                   .set_obs_bell =
                       [&](Bell bell) {
                         obs_->SetBell(bell);
                         ++bells;
                       },
                   .learner = {.shm_dir = dir_, .run_id = kRun, .spec_hash = 1}});
  const auto look_until = [&](int count) {
    const Deadline deadline = Deadline::AfterMs(20'000);
    while (bells < count && !deadline.Passed()) (void)env_end_->Look(kNanosPerMilli);
    return bells;
  };
  std::optional<LearnerRegion> first = LearnerRegion::CreateOrAdopt(dir_, kRun, 64, 1);
  ASSERT_EQ(look_until(1), 1);
  first->region().Unlink();
  first.reset();
  EXPECT_TRUE(env_end_->AnswererGone());
  const LearnerRegion second = LearnerRegion::CreateOrAdopt(dir_, kRun, 64, 1);
  ASSERT_EQ(look_until(2), 2);
  EXPECT_FALSE(env_end_->AnswererGone());
  const std::uint32_t armed = second.inference_bell().Arm();
  PublishRow();
  EXPECT_EQ(second.inference_bell().Wait(armed, 0), BellResult::kRung);
}

// The answer comes a few instructions before or after the environment's end, in Take, says that it
// sleeps. Property: it sleeps only while there is none; one that slept over an answer would find it
// when its time is over.
TEST_F(StreamEndsTest, AnswerThatComesWhileTheEnvEndGoesToSleepIsFound) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  constexpr std::int64_t kNapNs = 4 * kNanosPerSecond;
  const auto& word = reinterpret_cast<StreamBlock*>(Payload() + layout_.block)->env_bell.word;
  PolicyEnd policy_end = Attach();
  Handshake(policy_end);
  int armed_at = 0;  // instructions of Take until the bell is armed
  for (const int before : {0, 1, 2, 4, 8, 16, 32}) {
    PublishRow();
    const std::uint64_t row = policy_end.next_row();
    int steps = 0;
    bool answered = false;
    AnswerResult result = AnswerResult::kTimeout;
    const std::int64_t start_ns = MonotonicClock::Get().NowNs();
    testing::SingleStep([&] { result = env_end_->Take(row, actions_, version_, kNapNs); },
                        [&](const unsigned char*) {
                          ++steps;
                          const bool armed = (word.load() & 1U) != 0;
                          if (before == 0 ? !armed : steps < armed_at - before) return true;
                          answered = policy_end.Next() != nullptr && Decide(policy_end);
                          return false;
                        });
    const std::int64_t took_ns = MonotonicClock::Get().NowNs() - start_ns;
    if (before == 0) armed_at = steps;
    ASSERT_TRUE(answered);
    ASSERT_EQ(result, AnswerResult::kAnswer) << env_end_->problem();
    ASSERT_LT(took_ns, kNapNs / 2) << "answered " << before << " instructions before the sleep";
  }
}

// Each end sleeps whenever it has nothing to do, for longer than an answer ever takes. Property:
// the other wakes it, every time; one wake-up that does not come ends the test as a time-out.
TEST_F(StreamEndsTest, SleepingEndsWakeEachOther) {
  LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir_, kRun, 64, 1);
  EXPECT_FALSE(env_end_->AnswererGone());
  constexpr std::uint64_t kMany = 20'000;
  constexpr std::int64_t kNapNs = 5 * kNanosPerSecond;
  std::atomic<bool> stop{false};
  std::thread policy_thread([&] {
    PolicyEnd policy_end = PolicyEnd::Attach(path_, layout_.row, kRun);
    RingConsumer replay = RingConsumer::Attach(path_, layout_.row.Hash(), {}, RegionKind::kStream);
    Bell bell = learner.inference_bell();
    while (policy_end.answered() < kMany && !stop) {
      (void)policy_end.Poll();
      if (policy_end.Next() != nullptr) {
        const std::int32_t actions[kLanes] = {static_cast<std::int32_t>(policy_end.next_row() % 5)};
        if (!Decide(policy_end, actions)) continue;
        while (replay.tail() < policy_end.answered() && replay.Peek().status == RingStatus::kOk) {
          replay.Release(1);
        }
        continue;
      }
      const std::uint32_t armed = bell.Arm();
      if (policy_end.state() == PolicyEnd::State::kStreaming && policy_end.Next() == nullptr) {
        (void)bell.Wait(armed, kNapNs);
      } else {
        bell.Disarm(armed);
      }
    }
  });
  AnswererState state = AnswererState::kAbsent;
  for (int i = 0; i < 10 && state != AnswererState::kReady; ++i) state = env_end_->Look(kNapNs);
  EXPECT_EQ(state, AnswererState::kReady);
  for (std::uint64_t row = 0; row < kMany && !stop; ++row) {
    PublishRow();
    const Deadline patience(MonotonicClock::Get(), kNapNs);
    const AnswerResult result = env_end_->Take(row, actions_, version_, kNapNs);
    EXPECT_EQ(result, AnswerResult::kAnswer) << "row " << row << ": " << env_end_->problem();
    EXPECT_EQ(actions_[0], static_cast<std::int32_t>(row % 5));
    EXPECT_FALSE(patience.Passed()) << "an end slept over row " << row;
    stop = HasFailure();
  }
  stop = true;
  learner.inference_bell().Ring();
  policy_thread.join();
}

}  // namespace
}  // namespace tetrion
