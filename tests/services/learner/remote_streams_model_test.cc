#include <gtest/gtest.h>

#include <deque>

#include "lib/core/philox.h"
#include "tests/services/learner/remote_fixture.h"

// Property: whatever a network does to the messages between the learner and an actor that keeps to
// the protocol (loss, repetition, reordering), and however often the actor is cut off until it
// counts as dead or the learner is restarted, the replay gets every row from the one that the
// stream began at, once and in order; and the actor never gives a row back that is not in a replay.
// A row carries its number, which ingest checks: one too many or too few would end the stream.
namespace tetrion::learner {
namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t Below(std::uint32_t bound) {
    return BoundedDraw(PhiloxDraw(seed_, ++drawn_, 0, PhiloxPurpose::kSampler).word[0], bound);
  }
  bool OneIn(std::uint32_t n) { return Below(n) == 0; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

class RemoteStreamsModelTest : public RemoteFixture {
 protected:
  struct Letter {
    wire::RowsMessage message;
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  // The network towards either side: at most one of its faults a letter.
  template <typename T>
  void Post(std::deque<T>& mail, T letter) {
    if (lossy_ && draws_.OneIn(4)) return;
    if (lossy_ && draws_.OneIn(6)) mail.push_back(letter);
    if (lossy_ && draws_.OneIn(4) && !mail.empty()) {
      mail.push_front(std::move(letter));
    } else {
      mail.push_back(std::move(letter));
    }
  }
  void Send(const wire::PeerId&, const wire::RowsMessage& message) override {
    const auto* opened = std::get_if<wire::RowsOpened>(&message);
    if (opened != nullptr && opened->stream != begun_) {
      begun_ = opened->stream;
      base_ = static_cast<std::int64_t>(opened->next) - static_cast<std::int64_t>(RowsIn(0));
    }
    Post(to_actor_, message);
  }

  // What the actor does in its turn.
  void ActorTurn() {
    if (head_ - oldest_ < kHeld && head_ < kRows) head_ += draws_.Below(4);
    head_ = std::min(head_, kRows);
    if (stream_ == 0) return Post(to_learner_, Letter{OpenOf(oldest_)});
    if (draws_.OneIn(5)) sent_ = next_;  // nothing has come back for a while
    const std::uint64_t limit = std::min(head_, oldest_ + kCapacity);
    if (sent_ < limit) {
      const auto count = std::min<std::uint64_t>(1 + draws_.Below(5), limit - sent_);
      Post(to_learner_, Letter{wire::RowBatch{stream_, sent_, static_cast<std::uint32_t>(count)},
                               sent_, static_cast<std::uint32_t>(count)});
      sent_ += count;
    }
    Post(to_learner_, Letter{wire::RowsPing{}});
    if (head_ == kRows) Post(to_learner_, Letter{wire::CloseRows{stream_, kRows}});
  }
  void ActorHears(const wire::RowsMessage& message) {
    if (const auto* opened = std::get_if<wire::RowsOpened>(&message)) {
      stream_ = opened->stream;
      sent_ = next_ = std::max(opened->next, oldest_);
      Release(opened->released);
    }
    if (const auto* unknown = std::get_if<wire::StreamUnknown>(&message)) {
      // Nothing is left to say of a stream whose every row was released.
      if (unknown->stream == stream_) closed_ |= oldest_ == kRows;
      if (unknown->stream == stream_) stream_ = 0;
    }
    const auto* ack = std::get_if<wire::RowsAck>(&message);
    if (ack == nullptr) return;
    for (const wire::StreamAck& s : ack->streams) {
      if (s.stream != stream_) continue;
      next_ = std::max(next_, s.next);
      Release(s.released);
      closed_ |= s.closed && s.released == kRows;
    }
  }
  void Release(std::uint64_t released) {
    // An old answer may say less.
    if (released <= oldest_) return;
    EXPECT_LE(released, Taken()) << "given back before the replay had it";
    oldest_ = released;
    sent_ = std::max(sent_, oldest_);
  }
  void Deliver() {
    for (std::uint32_t n = draws_.Below(6); n > 0 && !to_learner_.empty(); --n) {
      const Letter letter = to_learner_.front();
      to_learner_.pop_front();
      // A connection keeps its order and a new one begins empty: no old Open comes late.
      const auto* open = std::get_if<wire::OpenRows>(&letter.message);
      if (open != nullptr && open->oldest != oldest_) continue;
      Say(letter.message, RemoteRows(layout_, 1, letter.first, letter.count));
    }
    for (std::uint32_t n = draws_.Below(6); n > 0 && !to_actor_.empty(); --n) {
      ActorHears(to_actor_.front());
      to_actor_.pop_front();
    }
  }
  // Row that the replay has come to.
  std::uint64_t Taken() const {
    return static_cast<std::uint64_t>(base_ + static_cast<std::int64_t>(RowsIn(0)));
  }
  // The actor is not heard until it counts as dead; then its ring is listed anew.
  void CutOff() {
    to_learner_.clear();
    to_actor_.clear();
    Cycle(2);  // a ring that was just listed is expected from now on
    for (int i = 0; i < 70; ++i) {
      clock_.AdvanceMs(840);
      Tick();
      Cycle(1);
    }
    Cycle(4);
    ASSERT_NE(TheEnded().end, wire::RingEnd::kQuarantined) << TheEnded().reason;
    board_.ForgetEndedExcept({});
    List({});
    Cycle(1);
    ListRemote();
  }
  void LearnerRestarts() {
    // What the old learner said last comes before anything that the new one says.
    for (; !to_actor_.empty(); to_actor_.pop_front()) {
      if (draws_.OneIn(2)) ActorHears(to_actor_.front());
    }
    Restart();
    to_learner_.clear();
    board_.ForgetEndedExcept({});
    ListRemote();
  }
  void PlayToTheEnd(std::uint64_t seed) {
    draws_ = Draws(seed);
    to_actor_.clear();
    LearnerRestarts();
    oldest_ = head_ = sent_ = next_ = stream_ = 0;
    closed_ = false;
    for (int turns = 0; turns < 20'000 && !closed_ && !HasFailure(); ++turns) {
      lossy_ = turns < 5000;
      ActorTurn();
      Deliver();
      Tick();
      if (draws_.OneIn(2)) Cycle(1);
      const std::uint32_t fate = head_ < kRows ? draws_.Below(300) : 300;
      if (fate == 0) LearnerRestarts();
      if (fate == 1) CutOff();
      restarts_ += fate == 0 ? 1 : 0;
      cuts_ += fate == 1 ? 1 : 0;
    }
  }

  static constexpr std::uint64_t kRows = 300;
  static constexpr std::uint64_t kHeld = 24;  // of the actor's ring
  Draws draws_{0};
  bool lossy_ = true;
  std::uint64_t oldest_ = 0, head_ = 0, sent_ = 0, next_ = 0, stream_ = 0;
  std::uint64_t begun_ = 0;  // newest stream, and the row at which the replay's first one would be
  std::int64_t base_ = 0;
  bool closed_ = false;
  int restarts_ = 0, cuts_ = 0;
  std::deque<Letter> to_learner_;
  std::deque<wire::RowsMessage> to_actor_;
};

TEST_F(RemoteStreamsModelTest, EveryRowIsInTheReplayOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    PlayToTheEnd(seed);
    ASSERT_TRUE(closed_) << "rows " << oldest_ << " to " << head_ << " of " << kRows;
    EXPECT_EQ(Taken(), kRows);
    EXPECT_EQ(agent_->counters().quarantined.load(), 0U);
    EXPECT_EQ(agent_->counters().rows_lost.load(), 0U);
  }
  EXPECT_GT(restarts_, 10);
  EXPECT_GT(cuts_, 10);
}

}  // namespace
}  // namespace tetrion::learner
