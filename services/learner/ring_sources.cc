#include "services/learner/ring_sources.h"

#include <algorithm>
#include <utility>

namespace tetrion::learner {

LocalRing::LocalRing(SourceId id, RingConsumer ring, const Clock& clock)
    : RowSource(std::move(id)), clock_(clock), ring_(std::move(ring)) {}

SourceRows LocalRing::Peek() {
  RingPeek peek = ring_.Peek();
  bool dead = false;
  if (peek.status == RingStatus::kEmpty && FindsOwnerDead()) {
    dead = true;
    peek = ring_.Peek();  // it may have published between the look and its death
  }
  switch (peek.status) {
    case RingStatus::kEmpty:
      return {.state = dead ? SourceState::kOwnerDead : SourceState::kNone};
    case RingStatus::kClosedAndEmpty:
      return {.state = SourceState::kClosed};
    case RingStatus::kCorrupt:
      problem_ = ring_.corrupt_reason();
      return {.state = SourceState::kUnusable};
    case RingStatus::kOk:
      break;
  }
  return {
      .state = SourceState::kRows, .rows = peek.records, .first = peek.first, .count = peek.count};
}

bool LocalRing::FindsOwnerDead() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_dead_check_ns_) return false;
  next_dead_check_ns_ = now_ns + kDeadCheckNs;
  return !ring_.OwnerAlive();
}

InferredRing::InferredRing(SourceId id, RingConsumer ring, std::shared_ptr<StreamShare> share,
                           const Clock& clock)
    : RowSource(std::move(id)),
      clock_(clock),
      ring_({}, std::move(ring), clock),
      share_(std::move(share)) {}

SourceRows InferredRing::Peek() {
  SourceRows rows = ring_.Peek();
  // Whatever the ring says: a stream that was never attached publishes nothing, and never will.
  if (Broken()) return {.state = SourceState::kUnusable};
  const std::uint64_t answered = share_->answered.load(std::memory_order_acquire);
  // Rows that were published for a learner that is gone: no policy has decided them.
  const std::uint64_t first = share_->first.load(std::memory_order_relaxed);
  std::uint64_t void_rows = 0;
  while (rows.state == SourceState::kRows && rows.first < first) {
    const std::uint64_t count = std::min<std::uint64_t>(rows.count, first - rows.first);
    ring_.Release(count);
    void_rows += count;
    rows = ring_.Peek();
  }
  rows.void_rows = void_rows;
  if (rows.state != SourceState::kRows) return rows;
  if (answered <= rows.first) return {.void_rows = void_rows + GiveUpUnanswered()};
  dead_since_ns_ = 0;
  rows.count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(rows.count, answered - rows.first));
  return rows;
}

// Nothing is answered. A live worker waits for us; a dead one's last rows are given some time.
// Returns how many were released after it.
std::uint64_t InferredRing::GiveUpUnanswered() {
  if (!ring_.FindsOwnerDead()) return 0;
  const std::int64_t now_ns = clock_.NowNs();
  if (dead_since_ns_ == 0) dead_since_ns_ = now_ns;
  if (now_ns - dead_since_ns_ < kLastAnswersNs) return 0;
  const std::uint64_t lost = ring_.backlog_rows();
  ring_.Release(lost);
  return lost;
}

bool InferredRing::HasNews() {
  if (Broken()) return true;
  if (!ring_.HasNews()) return false;
  if (ring_.backlog_rows() == 0) return true;  // an end
  return share_->answered.load(std::memory_order_acquire) > ring_.next_row();
}

const std::string& InferredRing::problem() const {
  return Broken() ? share_->problem : ring_.problem();
}

bool InferredRing::TryRemove() {
  EndShare();
  return ring_.TryRemove();
}

void InferredRing::Remove() {
  EndShare();
  ring_.Remove();
}

}  // namespace tetrion::learner
