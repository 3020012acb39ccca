#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/shm/bell.h"
#include "lib/wire/rows_messages.h"
#include "lib/wire/rows_packing.h"
#include "lib/wire/socket.h"
#include "services/learner/remote_board.h"

namespace tetrion::learner {

// Written by the rows thread, read by anyone; relaxed.
struct RemoteCounters {
  std::atomic<std::uint64_t> rows{0};           // received, each once
  std::atomic<std::uint64_t> bytes{0};          // of those rows, unpacked
  std::atomic<std::uint64_t> payload_bytes{0};  // of all batches, as they came
  std::atomic<std::uint64_t> duplicates{0};     // rows that had come before
  std::atomic<std::uint64_t> gaps{0};           // rows dropped, one before them was missing
  std::atomic<std::uint64_t> beyond{0};         // rows dropped, their actor had no credit for them
  std::atomic<std::uint64_t> streams{0};        // now
  std::atomic<std::uint64_t> silent{0};         // streams ended by silence
  std::atomic<std::uint64_t> broken{0};         // streams ended by something impossible
};

// The learner's end of the streams of remote rows (lib/wire/rows_messages.h), apart from any
// socket: what comes in is handed to it, what goes out leaves through RowsOut.
//
// Invariants
//   1. A row is written into the stream's ring once and in order: the next one is `next`. Older
//      ones are dropped as duplicates, later ones as a gap; both are answered with `next`.
//   2. `released` is what ingest has released: a row that is acknowledged as released is in the
//      replay. The ring's capacity is all the credit there is, and thereby the memory.
//   3. A process whose messages stop for `silence_ns` has its streams ended; a stream whose owner's
//      session has ended, after `ownerless_silence_ns`. Time in which this thread did not run does
//      not count. An actor that comes back goes on where its stream ended, by silence or closed.
//   4. Nothing that comes in is believed: sizes are compared with the run's before memory is made.
//
// Thread role: the rows thread; the counters any.
class RemoteStreams {
 public:
  struct Config {
    std::uint64_t run_id = 0;
    std::uint64_t row_bytes = 0;     // of the run's rows
    std::uint64_t spec_hash = 0;     // RowLayout::Hash
    std::uint64_t ring_rows = 0;     // capacity of a stream's ring, a power of two
    std::uint64_t first_stream = 0;  // random, so that no stream of an earlier learner is taken up
    std::int64_t silence_ns = 60 * kNanosPerSecond;
    // Ten pings of an actor. It costs an actor that lives nothing: its tokens are free already.
    std::int64_t ownerless_silence_ns = 5 * kNanosPerSecond;
    std::int64_t ack_every_ns = 200 * kNanosPerMilli;  // with progress at once
    // Ended streams whose actors may come back: those of some hosts.
    std::size_t max_ends = 4096;
  };
  // Where messages go. A message that finds no room, or no peer, is lost: all are said again.
  class RowsOut {
   public:
    virtual ~RowsOut() = default;
    virtual void Send(const wire::PeerId& peer, const wire::RowsMessage& message) = 0;
  };
  // `ingest` is rung for new rows and ends. References outlive the object.
  RemoteStreams(const Config& config, RemoteBoard& board, Bell ingest, RowsOut& out,
                const Clock& clock = MonotonicClock::Get());

  // A message of a peer; those that only a learner sends, or about weights, are ignored.
  void On(const wire::PeerId& peer, const wire::Identity& sender, const wire::RowsMessage& message,
          std::span<const std::byte> payload);
  // Acknowledges what moved and what is due, ends what is silent. After every look at the socket.
  void Tick(std::uint32_t weights_version);
  // Some stream's rows are not released yet: Tick again soon.
  bool AwaitsRelease() const { return awaits_release_; }
  // Whether the sender is of this run and has a stream, or had one within `silence_ns`.
  bool Serves(const wire::Identity& sender) const {
    return sender.run_id == config_.run_id && peers_.contains(sender.process);
  }
  // What actors may send before ingest has taken it: the rings of the streams of the last Tick.
  std::uint64_t CreditBytes() const {
    return counters_.streams.load(std::memory_order_relaxed) * config_.ring_rows *
           config_.row_bytes;
  }
  const RemoteCounters& counters() const { return counters_; }

 private:
  struct Stream {
    std::shared_ptr<RemoteStream> ring;  // null once closed and taken to the end
    std::string path;
    std::uint64_t process = 0;
    std::uint64_t next = 0, released = 0;
    std::uint64_t told_next = 0, told_released = 0;
    bool closed = false;
    bool tell = false;                                           // whether or not it has moved
    bool GivenUp() const { return ring == nullptr && !closed; }  // by ingest
  };
  struct Peer {
    wire::PeerId id;  // connection it was last heard on
    std::int64_t heard_ns = 0;
    std::int64_t streamed_ns = 0;  // when it last had a stream
    std::int64_t next_ack_ns = 0;
    std::uint64_t pinged = 0;  // its highest ping
  };

  void OnOpen(const wire::PeerId& peer, const wire::Identity& sender, const wire::OpenRows& open);
  void OnBatch(std::uint64_t number, Stream& stream, const wire::RowBatch& batch,
               std::span<const std::byte> payload);
  void OnClose(std::uint64_t number, Stream& stream, const wire::CloseRows& close);
  std::string WhatIsWrong(const wire::Identity& sender, const wire::OpenRows& open) const;
  Stream* Find(std::uint64_t number, std::uint64_t process);
  std::uint64_t NumberOf(const std::string& path) const;
  std::uint64_t Begin(const wire::Identity& sender, const wire::OpenRows& open);
  void Hear(const wire::PeerId& peer, std::uint64_t process);
  void Write(Stream& stream, std::span<const std::byte> rows);
  void Break(std::uint64_t number, Stream& stream, const std::string& problem);
  void Look(Stream& stream);
  void Remember(const Stream& stream);
  void EndSilent(std::int64_t now_ns);
  void ForgetStreamless(std::int64_t now_ns);
  void EndBySilence(std::uint64_t number, const Stream& stream, std::int64_t silent_ns);
  void Acknowledge(std::uint64_t process, Peer& peer, std::int64_t now_ns,
                   std::uint32_t weights_version);

  const Config config_;
  RemoteBoard& board_;
  Bell ingest_;
  RowsOut& out_;
  const Clock& clock_;
  std::map<std::uint64_t, Stream> streams_;  // by number
  std::map<std::uint64_t, Peer> peers_;      // by process; each has, or lately had, a stream
  struct End {
    std::uint64_t next = 0;    // row: ingest takes all before it
    std::uint64_t number = 0;  // of the ends, so that the oldest is known
  };
  std::map<std::string, End> ends_;  // by path; the newest, in case their actors come back
  std::uint64_t last_end_ = 0;
  std::uint64_t next_stream_;
  std::int64_t last_tick_ns_;
  bool awaits_release_ = false;
  std::int64_t next_complaint_ns_ = 0;
  wire::RowsPacker packer_;
  std::vector<std::byte> unpacked_;
  RemoteCounters counters_;
};

}  // namespace tetrion::learner
