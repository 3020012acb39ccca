#include "services/actor/rows_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "tests/services/actor/rows_world.h"

namespace tetrion::actor {
namespace {

using testing::CountingRing;
using testing::PlainLearner;
using testing::RecordingPort;
using testing::Sent;

std::string PathOf(int worker) {
  return "remote:0000000000000005." + std::to_string(worker);
}

TEST(RowsDeliveryTest, AsksForASignOfLifeAndReconnectsAfterSilence) {
  FakeClock clock;
  WeightsInbox inbox;
  RowsDelivery delivery({}, inbox, clock);
  RecordingPort port;
  delivery.Send(port);
  delivery.Send(port);
  EXPECT_EQ(port.All<wire::RowsPing>().size(), 1U);
  clock.AdvanceMs(500);
  delivery.Send(port);
  EXPECT_EQ(port.All<wire::RowsPing>().size(), 2U);
  clock.AdvanceMs(2499);
  EXPECT_FALSE(delivery.Silent());
  clock.AdvanceMs(1);
  EXPECT_TRUE(delivery.Silent());
  delivery.OnReconnect();
  EXPECT_FALSE(delivery.Silent()) << "the new connection has its time";
  delivery.Send(port);
  EXPECT_FALSE(inbox.learner_gone());
  clock.AdvanceMs(6000);
  delivery.Send(port);
  EXPECT_TRUE(inbox.learner_gone());
  delivery.On(wire::RowsAck{});
  delivery.Send(port);
  EXPECT_FALSE(inbox.learner_gone());
  EXPECT_FALSE(delivery.Silent());
}

TEST(RowsDeliveryTest, EachConnectionWithoutRowsThatArriveMayBeSilentForTwiceAsLongUpTo24Seconds) {
  FakeClock clock;
  WeightsInbox inbox;
  RowsDelivery delivery({}, inbox, clock);
  for (const int silence_ms : {3'000, 6'000, 12'000, 24'000, 24'000}) {
    delivery.OnReconnect();
    clock.AdvanceMs(silence_ms - 1);
    EXPECT_FALSE(delivery.Silent()) << silence_ms;
    clock.AdvanceMs(1);
    EXPECT_TRUE(delivery.Silent()) << silence_ms;
  }
}

TEST(RowsDeliveryTest, RefusedConnectionsAreOpenedAnewEveryThreeSeconds) {
  FakeClock clock;
  WeightsInbox inbox;
  RowsDelivery delivery({}, inbox, clock);
  for (int i = 0; i < 5; ++i) {
    delivery.OnReconnect();
    delivery.SetRefused(true);
    clock.AdvanceMs(3'000);
    EXPECT_TRUE(delivery.Silent()) << i;
  }
}

// A slow uplink: there is room for one message at a time, and rows want all of it.
TEST(RowsDeliveryTest, SignsOfLifeAndIdleStreamsOutliveAFullSocket) {
  FakeClock clock;
  WeightsInbox inbox;
  CountingRing busy(32), idle(32);
  RowsDelivery delivery({}, inbox, clock);
  PlainLearner learner(1, 16);
  delivery.Add(
      RowStream({.path = PathOf(0), .spec_hash = testing::kSpecHash}, busy.Consumer(), clock));
  delivery.Add(
      RowStream({.path = PathOf(1), .spec_hash = testing::kSpecHash}, idle.Consumer(), clock));
  std::size_t pings = 0, opened = 0, full = 0;
  for (int i = 0; i < 3000; ++i) {
    busy.Write(32);
    RecordingPort port;
    port.room = 1;
    delivery.Send(port);
    full += port.sent.size();
    pings += port.All<wire::RowsPing>().size();
    opened += port.All<wire::OpenRows>().size();
    for (const Sent& sent : port.sent) {
      for (const wire::RowsMessage& answer : learner.On(sent)) delivery.On(answer);
    }
    for (auto& [number, stream] : learner.streams) {
      if (stream.released == stream.next) continue;  // unasked it tells of streams that moved
      stream.released = stream.next;
      delivery.On(wire::RowsAck{{{number, stream.next, stream.released, false}}, 0});
    }
    clock.AdvanceMs(1);
  }
  EXPECT_GT(full, 2900U) << "there was room";
  EXPECT_GE(pings, 5U);
  EXPECT_EQ(opened, 2U) << "an idle stream was taken for an unknown one";
}

TEST(RowsDeliveryTest, FinalRefusalEndsTheActorAndAnotherIsAskedAgain) {
  FakeClock clock;
  WeightsInbox inbox;
  CountingRing ring(8);
  RowsDelivery delivery({}, inbox, clock);
  delivery.Add(RowStream({.path = PathOf(0)}, ring.Consumer(), clock));
  RecordingPort port;
  delivery.On(wire::OpenRefused{PathOf(0), "not yet", false});
  clock.AdvanceMs(200);
  delivery.Send(port);
  EXPECT_EQ(port.All<wire::OpenRows>().size(), 1U);
  delivery.On(wire::OpenRefused{PathOf(1), "another's", true});
  try {
    delivery.On(wire::OpenRefused{PathOf(0), "its run is another", true});
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("its run is another"));
  }
}

// The property: whatever a network does to messages and whenever the learner is killed, every row
// is received by the learner that lives at the end or was in the replay of an earlier one; none is
// received twice by one learner, none beyond its room, and an actor's ring is never released ahead
// of a replay. PlainLearner checks what it receives.
class BadNetwork {
 public:
  BadNetwork(std::uint64_t seed, int workers)
      : seed_(seed), learner_(std::make_unique<PlainLearner>(1, kCapacity)) {
    RowsDelivery::Config config = {.compress = seed % 3 == 0};
    delivery_.emplace(config, inbox_, clock_);
    for (int w = 0; w < workers; ++w) {
      rings_.push_back(std::make_unique<CountingRing>(32));
      replayed_.push_back(0);
      delivery_->Add(RowStream({.path = PathOf(w),
                                .spec_hash = testing::kSpecHash,
                                .batch_bytes = 5 * testing::kRowBytes},
                               rings_.back()->Consumer(), clock_));
    }
  }

  // One step of the bad world, 20 ms long.
  void Step() {
    clock_.AdvanceMs(20);
    for (const auto& ring : rings_) ring->Write(Draw(6));
    if (Draw(100) == 0) partition_until_ns_ = clock_.NowNs() + 5 * kNanosPerSecond;
    if (Draw(200) == 0) KillLearner();
    if (delivery_->Silent() || Draw(100) == 0) Reconnect();
    Exchange(/*loss_percent=*/10);
  }
  // Nothing is lost any more, and no row follows.
  bool Settle() {
    for (const auto& ring : rings_) ring->Close();
    partition_until_ns_ = 0;
    for (int i = 0; i < 2000 && !delivery_->Done(); ++i) {
      clock_.AdvanceMs(20);
      if (delivery_->Silent()) Reconnect();
      Exchange(0);
    }
    return delivery_->Done();
  }
  void CheckAll() {
    for (std::size_t w = 0; w < rings_.size(); ++w) {
      const PlainLearner::Stream* last = Find(w);
      ASSERT_NE(last, nullptr);
      EXPECT_EQ(last->next, rings_[w]->published()) << "worker " << w;
      EXPECT_LE(last->first, replayed_[w]) << "rows between were lost, worker " << w;
    }
  }
  int learners() const { return incarnation_; }
  const RowsDelivery& delivery() const { return *delivery_; }

 private:
  static constexpr std::uint64_t kCapacity = 16;

  std::uint64_t Draw(std::uint32_t below) {
    return PhiloxDraw(seed_, draws_++, 0, PhiloxPurpose::kSampler).word[0] % below;
  }
  const PlainLearner::Stream* Find(std::size_t worker) const {
    for (const auto& [number, stream] : learner_->streams) {
      if (stream.path == PathOf(static_cast<int>(worker))) return &stream;
    }
    return nullptr;
  }
  // Its replay takes rows in its own time.
  void Replay() {
    for (auto& [number, stream] : learner_->streams) {
      stream.released += std::min<std::uint64_t>(stream.next - stream.released, Draw(8));
      const auto w = static_cast<std::size_t>(stream.path.back() - '0');
      replayed_[w] = std::max(replayed_[w], stream.released);
      EXPECT_LE(rings_[w]->released(), replayed_[w]) << "given up before it was in a replay";
    }
  }
  // What was on its way to it ends with its connections. Of its answers the actor reads those that
  // have arrived before it says anything to the next learner, as the courier does.
  void KillLearner() {
    for (std::uint64_t n = Draw(20); n > 0 && !to_actor_.empty(); --n) {
      delivery_->On(to_actor_.front());
      to_actor_.pop_front();
    }
    to_actor_.clear();
    learner_ = std::make_unique<PlainLearner>(++incarnation_, kCapacity);
    to_learner_.clear();
    late_.clear();
  }
  // What the old connection still carries may arrive after what the new one does.
  void Reconnect() {
    delivery_->OnReconnect();
    to_actor_.clear();
    for (Sent& late : to_learner_) {
      if (Draw(2) == 0) late_.push_back(std::move(late));
    }
    to_learner_.clear();
  }
  void Exchange(std::uint32_t loss_percent) {
    RecordingPort port;
    port.room = 1 + Draw(20);
    delivery_->Send(port);
    for (Sent& sent : port.sent) to_learner_.push_back(std::move(sent));
    Replay();
    const bool parted = clock_.NowNs() < partition_until_ns_;
    if (!parted && !late_.empty() && Draw(2) == 0) Deliver(late_, loss_percent);
    for (std::uint64_t n = Draw(12); n > 0 && !to_learner_.empty() && !parted; --n) {
      Deliver(to_learner_, loss_percent);
    }
    for (std::uint64_t n = Draw(12); n > 0 && !to_actor_.empty() && !parted; --n) {
      const wire::RowsMessage message = to_actor_.front();
      to_actor_.pop_front();
      if (Draw(100) < loss_percent) continue;
      delivery_->On(message);
      if (Draw(10) == 0) delivery_->On(message);
    }
  }
  void Deliver(std::deque<Sent>& queue, std::uint32_t loss_percent) {
    const Sent sent = std::move(queue.front());
    queue.pop_front();
    if (Draw(100) < loss_percent) return;
    for (int times = Draw(10) == 0 ? 2 : 1; times > 0; --times) {
      for (wire::RowsMessage& answer : learner_->On(sent)) to_actor_.push_back(std::move(answer));
    }
  }

  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  FakeClock clock_;
  WeightsInbox inbox_;
  std::vector<std::unique_ptr<CountingRing>> rings_;
  std::vector<std::uint64_t> replayed_;  // by worker: rows that some learner has released
  std::optional<RowsDelivery> delivery_;
  std::unique_ptr<PlainLearner> learner_;
  int incarnation_ = 1;
  std::int64_t partition_until_ns_ = 0;
  std::deque<Sent> to_learner_, late_;
  std::deque<wire::RowsMessage> to_actor_;
};

// An uplink that carries so many bytes a step of 20 ms, and nothing that was on its way when the
// actor connects anew. The learner answers at once and its replay takes all there is.
class SlowUplink {
 public:
  explicit SlowUplink(std::uint64_t step_bytes) : step_bytes_(step_bytes) {
    delivery_.Add(RowStream({.path = PathOf(0),
                             .spec_hash = testing::kSpecHash,
                             .batch_bytes = kBatchRows * testing::kRowBytes},
                            ring_.Consumer(), clock_));
  }

  void Run(int seconds) {
    for (int i = 0; i < 50 * seconds; ++i) Step();
  }
  void SetStepBytes(std::uint64_t bytes) { step_bytes_ = bytes; }
  std::uint64_t arrived() const {
    return learner_.streams.empty() ? 0 : learner_.streams.begin()->second.next;
  }
  int reconnects() const { return reconnects_; }
  std::uint64_t duplicates() const { return learner_.duplicates; }
  std::uint32_t last_count() const { return last_count_; }
  bool SilentAfterMs(int ms) {
    clock_.AdvanceMs(ms);
    return delivery_.Silent();
  }

  static constexpr std::uint64_t kBatchRows = 64;
  static constexpr std::uint64_t kEnvelopeBytes = 32;

 private:
  static constexpr std::size_t kQueue = 64;  // messages, as of a RowsClient

  void Step() {
    clock_.AdvanceMs(20);
    ring_.Write(256);
    if (delivery_.Silent()) {
      ++reconnects_;
      queue_.clear();
      carried_bytes_ = 0;
      delivery_.OnReconnect();
    }
    RecordingPort port;
    port.room = kQueue - queue_.size();
    delivery_.Send(port);
    for (Sent& sent : port.sent) queue_.push_back(std::move(sent));
    for (carried_bytes_ += step_bytes_; !queue_.empty(); queue_.pop_front()) {
      const std::uint64_t bytes = kEnvelopeBytes + queue_.front().payload.size();
      if (carried_bytes_ < bytes) return;
      carried_bytes_ -= bytes;
      Arrive(queue_.front());
    }
    carried_bytes_ = 0;
  }
  void Arrive(const Sent& sent) {
    if (const auto* batch = std::get_if<wire::RowBatch>(&sent.message)) last_count_ = batch->count;
    for (const wire::RowsMessage& answer : learner_.On(sent)) delivery_.On(answer);
    for (auto& [number, stream] : learner_.streams) stream.released = stream.next;
  }

  std::uint64_t step_bytes_, carried_bytes_ = 0;
  FakeClock clock_;
  WeightsInbox inbox_;
  CountingRing ring_{256};
  RowsDelivery delivery_{{}, inbox_, clock_};
  PlainLearner learner_{1, 256};
  std::deque<Sent> queue_;
  int reconnects_ = 0;
  std::uint32_t last_count_ = 0;
};

// So many that a batch takes 4 s: longer than the learner may be silent at first.
constexpr std::uint64_t kSlowStepBytes =
    (SlowUplink::kBatchRows * testing::kRowBytes + SlowUplink::kEnvelopeBytes) / (4 * 50);

TEST(RowsDeliveryModel, RowsArriveThoughABatchTakesLongerThanTheFirstSilence) {
  SlowUplink uplink(kSlowStepBytes);
  uplink.Run(60);
  EXPECT_GT(uplink.reconnects(), 0) << "the uplink was not slow";
  EXPECT_GT(uplink.arrived(), 0U);
  const int reconnects = uplink.reconnects();
  const std::uint64_t arrived = uplink.arrived(), duplicates = uplink.duplicates();
  uplink.Run(60);
  EXPECT_EQ(uplink.reconnects(), reconnects) << "it goes on and off";
  EXPECT_GT(uplink.arrived(), arrived);
  EXPECT_EQ(uplink.duplicates(), duplicates) << "rows that were only late were sent again";
}

TEST(RowsDeliveryModel, RowsArriveThoughABatchTakesLongerThanTheLongestSilence) {
  SlowUplink uplink(1);  // 82 s
  uplink.Run(600);
  EXPECT_GT(uplink.arrived(), 0U);
}

TEST(RowsDeliveryModel, UplinkThatIsFastAgainGetsWholeBatchesAndTheFirstSilence) {
  SlowUplink uplink(kSlowStepBytes);
  uplink.Run(60);
  EXPECT_GT(uplink.last_count(), 0U);
  EXPECT_LT(uplink.last_count(), SlowUplink::kBatchRows);
  uplink.SetStepBytes(1 << 20);
  uplink.Run(60);
  EXPECT_EQ(uplink.last_count(), SlowUplink::kBatchRows);
  EXPECT_FALSE(uplink.SilentAfterMs(2'900));
  EXPECT_TRUE(uplink.SilentAfterMs(100));
}

TEST(RowsDeliveryModel, NoRowIsLostOrTakenTwiceOverABadNetwork) {
  std::uint64_t resent = 0;
  int learners = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BadNetwork world(seed, 3);
    for (int i = 0; i < 600; ++i) world.Step();
    ASSERT_TRUE(world.Settle());
    world.CheckAll();
    ASSERT_FALSE(HasFailure());
    resent += world.delivery().totals().streams.resent;
    learners += world.learners();
  }
  EXPECT_GT(resent, 1000U) << "the network was not bad";
  EXPECT_GT(learners, 80) << "no learner was killed";
}

}  // namespace
}  // namespace tetrion::actor
