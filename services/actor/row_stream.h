#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/shm/ring_consumer.h"
#include "lib/wire/rows_messages.h"
#include "lib/wire/rows_packing.h"

namespace tetrion::actor {

// Where messages to the learner go.
class RowsPort {
 public:
  virtual ~RowsPort() = default;
  // Returns at once. False when there is no room for the message now: it was not sent.
  [[nodiscard]] virtual bool Send(const wire::RowsMessage& message,
                                  std::span<const std::byte> payload = {}) = 0;
};

// One worker's rows on their way to the learner: the actor's half of the protocol that
// wire/rows_messages.h states, apart from any socket.
//
//   ring    tail ........ next_ ........ send_ ........ sent_ ........ head
//           kept          the learner    sent on this   sent ever      written by the worker
//                         has it         connection
//
// Invariants:
//   1. A row leaves the ring only when the learner says that it is released: so any message may be
//      lost, twice or late, and either process may be killed.
//   2. Nothing at or above released + capacity is sent: the learner's ring has room for it.
//   3. An answer that this actor's rows cannot have led to changes nothing and is counted.
// Nothing is allocated but one batch's packed rows. One thread, the courier's.
class RowStream {
 public:
  struct Config {
    std::string path;  // wire::RemoteRingPath
    std::uint64_t spec_hash = 0;
    std::uint64_t batch_bytes = 64 * 1024;  // rows of one message, unpacked
  };
  struct Pace {
    int halvings = 0;         // of batch_bytes; a batch has a row at least
    std::uint64_t pings = 0;  // sent on any connection; the newest before the rows of this Send
    // The learner tells of every stream it has when it is asked for a sign of life, several times
    // in so long. One that it leaves out is none of its own, whether or not there is a row to send.
    std::int64_t unmentioned_ns = 2 * kNanosPerSecond;
  };
  struct Stats {
    std::uint64_t rows = 0;        // sent for the first time
    std::uint64_t resent = 0;      // sent again
    std::uint64_t bytes = 0;       // of their payloads, as they travelled
    std::uint64_t impossible = 0;  // answers that were dropped
  };

  // `ring` is the worker's; the stream is its only consumer.
  RowStream(Config config, RingConsumer ring, const Clock& clock);

  // How slow the connection is, from the next Send on.
  void SetPace(const Pace& pace) { pace_ = pace; }
  // Sends what is due. `packer`: null to send rows as they are. Returns how many messages.
  int Send(RowsPort& port, wire::RowsPacker* packer);
  // Answers of the learner. Those for another stream are ignored. An acknowledgement: whether rows
  // have arrived since the last. `answered`: RowsAck::answered.
  void On(const wire::RowsOpened& opened);
  bool On(const wire::StreamAck& ack, std::uint64_t answered);
  // The connection is new: open the stream again.
  void Reopen();
  // The learner does not know the stream (any more): it is another learner, or all was said.
  void OnUnknown();

  // Every row was received and the learner knows that none follows.
  bool done() const { return state_ == State::kDone; }
  const std::string& path() const { return config_.path; }
  // What the learner calls it; 0 while it is not open.
  std::uint64_t stream() const { return state_ == State::kOpen ? stream_ : 0; }
  // Written by the worker and not released yet, as far as it was looked at.
  std::uint64_t unacknowledged() const { return ring_.head() - ring_.tail(); }
  const Stats& stats() const { return stats_; }

 private:
  enum class State { kOpening, kOpen, kDone };

  bool IsPossible(std::uint64_t next, std::uint64_t released) const;
  void Advance(std::uint64_t next, std::uint64_t released);
  void NotePing();
  void GoBackIfLost(std::uint64_t answered);
  int SendOpen(RowsPort& port);
  int SendRows(RowsPort& port, wire::RowsPacker* packer);
  bool SendBatch(RowsPort& port, wire::RowsPacker* packer, const RingPeek& rows,
                 std::uint32_t count);
  int SendClose(RowsPort& port);

  const Config config_;
  const Clock& clock_;
  RingConsumer ring_;
  Pace pace_;
  State state_ = State::kOpening;
  std::uint64_t stream_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t send_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t capacity_ = 0;
  bool ended_ = false;  // the worker has closed its ring, and all of it was sent
  std::int64_t open_due_ns_ = 0;
  std::int64_t close_due_ns_ = 0;
  std::int64_t mentioned_ns_ = 0;  // when the learner last told of the stream
  // Rows below `marked_` were sent before ping `mark_`: they arrive before it, or not at all.
  std::uint64_t mark_ = 0;  // 0: no ping is waited for
  std::uint64_t marked_ = 0;
  std::uint64_t noted_pings_ = 0;
  // A batch that was packed and found no room: rows [packed_first_, + packed_count_).
  std::vector<std::byte> packed_;
  std::uint64_t packed_first_ = 0;
  std::uint32_t packed_count_ = 0;
  wire::RowsPacking packing_ = wire::RowsPacking::kNone;
  Stats stats_;
};

}  // namespace tetrion::actor
