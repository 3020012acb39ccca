#include "services/actor/row_stream.h"

#include <algorithm>
#include <utility>

#include "lib/core/check.h"

namespace tetrion::actor {
namespace {

constexpr std::int64_t kOpenEveryNs = 200 * kNanosPerMilli;
constexpr std::int64_t kCloseEveryNs = 200 * kNanosPerMilli;
// Messages of one worker in one round, so that its neighbours have their turn.
constexpr int kMaxBatchesOfRound = 8;

}  // namespace

RowStream::RowStream(Config config, RingConsumer ring, const Clock& clock)
    : config_(std::move(config)),
      clock_(clock),
      ring_(std::move(ring)),
      next_(ring_.tail()),
      send_(next_),
      sent_(next_),
      released_(next_) {
  TETRION_CHECK(ring_.stride_bytes() <= wire::kMaxPayloadBytes, "a row is too long for a message");
}

void RowStream::Reopen() {
  if (state_ == State::kDone) return;
  state_ = State::kOpening;
  open_due_ns_ = 0;
}

void RowStream::OnUnknown() {
  if (ended_ && released_ == send_) {
    state_ = State::kDone;
  } else {
    Reopen();
  }
}

int RowStream::Send(RowsPort& port, wire::RowsPacker* packer) {
  if (state_ == State::kDone) return 0;
  if (state_ == State::kOpen && clock_.NowNs() - mentioned_ns_ >= pace_.unmentioned_ns) Reopen();
  if (state_ == State::kOpening) return SendOpen(port);
  NotePing();
  const int batches = SendRows(port, packer);
  return batches + SendClose(port);
}

int RowStream::SendOpen(RowsPort& port) {
  if (clock_.NowNs() < open_due_ns_ || !port.Send(wire::OpenRows{.path = config_.path,
                                                                 .row_bytes = ring_.stride_bytes(),
                                                                 .spec_hash = config_.spec_hash,
                                                                 .oldest = ring_.tail()})) {
    return 0;
  }
  open_due_ns_ = clock_.NowNs() + kOpenEveryNs;
  return 1;
}

// Whether a learner that has these rows can have had them from here.
bool RowStream::IsPossible(std::uint64_t next, std::uint64_t released) const {
  return ring_.tail() <= released && released <= next && next <= sent_;
}

void RowStream::On(const wire::RowsOpened& opened) {
  if (state_ != State::kOpening || opened.path != config_.path) return;
  if (!IsPossible(opened.next, opened.released) || opened.capacity == 0) {
    ++stats_.impossible;
    return;
  }
  state_ = State::kOpen;
  stream_ = opened.stream;
  capacity_ = opened.capacity;
  next_ = opened.next;
  send_ = opened.next;
  ended_ = false;
  close_due_ns_ = 0;
  mentioned_ns_ = clock_.NowNs();
  mark_ = 0;
  Advance(opened.next, opened.released);
}

bool RowStream::On(const wire::StreamAck& ack, std::uint64_t answered) {
  if (state_ != State::kOpen || ack.stream != stream_) return false;
  mentioned_ns_ = clock_.NowNs();
  if (ack.next < next_ || ack.released < released_) return false;  // overtaken by a later one
  if (!IsPossible(ack.next, ack.released)) {
    ++stats_.impossible;
    return false;
  }
  const bool progress = ack.next > next_;
  Advance(ack.next, ack.released);
  GoBackIfLost(answered);
  if (ack.closed && ended_ && next_ == send_) state_ = State::kDone;
  return progress;
}

void RowStream::Advance(std::uint64_t next, std::uint64_t released) {
  next_ = next;
  send_ = std::max(send_, next_);
  released_ = released;
  if (released > ring_.tail()) ring_.Release(released - ring_.tail());
}

// A ping was sent since the last Send: it follows the rows that are on their way.
void RowStream::NotePing() {
  if (pace_.pings == noted_pings_) return;
  noted_pings_ = pace_.pings;
  if (mark_ != 0) return;
  mark_ = pace_.pings;
  marked_ = send_;
}

void RowStream::GoBackIfLost(std::uint64_t answered) {
  if (mark_ == 0 || answered < mark_) return;
  mark_ = 0;
  if (next_ >= marked_) return;
  send_ = next_;
  ended_ = false;
}

int RowStream::SendRows(RowsPort& port, wire::RowsPacker* packer) {
  const std::uint64_t most =
      std::max<std::uint64_t>(1, (config_.batch_bytes >> pace_.halvings) / ring_.stride_bytes());
  for (int batches = 0; batches < kMaxBatchesOfRound; ++batches) {
    const RingPeek rows = ring_.Peek(send_ - ring_.tail());
    TETRION_CHECK(rows.status != RingStatus::kCorrupt, "a worker broke its own ring");
    ended_ = rows.status == RingStatus::kClosedAndEmpty;
    const std::uint64_t credit = released_ + capacity_ - send_;
    const std::uint64_t count = std::min({std::uint64_t{rows.count}, credit, most});
    if (count == 0 || !SendBatch(port, packer, rows, static_cast<std::uint32_t>(count))) {
      return batches;
    }
  }
  return kMaxBatchesOfRound;
}

bool RowStream::SendBatch(RowsPort& port, wire::RowsPacker* packer, const RingPeek& rows,
                          std::uint32_t count) {
  if (packed_count_ > 0 && packed_first_ == send_) count = std::min(count, packed_count_);
  wire::RowBatch batch = {.stream = stream_, .first = send_, .count = count};
  std::span<const std::byte> payload(rows.records, count * ring_.stride_bytes());
  if (packer != nullptr) {
    if (packed_first_ != send_ || packed_count_ != count) {
      packing_ = packer->Pack(payload, packed_);
      packed_first_ = send_;
      packed_count_ = count;
    }
    batch.packing = packing_;
    if (batch.packing != wire::RowsPacking::kNone) payload = packed_;
  }
  if (!port.Send(batch, payload)) return false;
  packed_count_ = 0;
  const std::uint64_t end = send_ + count;
  const std::uint64_t fresh = end > sent_ ? end - std::max(sent_, send_) : 0;
  stats_.rows += fresh;
  stats_.resent += count - fresh;
  stats_.bytes += payload.size();
  sent_ = std::max(sent_, end);
  send_ = end;
  return true;
}

int RowStream::SendClose(RowsPort& port) {
  if (!ended_ || clock_.NowNs() < close_due_ns_ ||
      !port.Send(wire::CloseRows{.stream = stream_, .end = send_})) {
    return 0;
  }
  close_due_ns_ = clock_.NowNs() + kCloseEveryNs;
  return 1;
}

}  // namespace tetrion::actor
