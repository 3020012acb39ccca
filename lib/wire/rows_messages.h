#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lib/wire/messages.h"

namespace tetrion::wire {

// What an actor on another host and the learner say to each other about rows and weights, as plain
// structs; proto/rows.fbs is their encoding, rows_codec.h the only bridge between the two. A
// message's envelope names its sender (Identity). RowBatch and WeightsChunk have a payload, the
// second frame of their message, which is no part of the encoding.
//
// A worker's rows are a stream. The actor keeps every row until the learner has released it:
//
//   actor's ring     oldest ........ released ........ next ........ head
//                    given back      in the replay     in the        written, to be sent
//                    to the worker                     learner's ring
//
// OpenRows is repeated until it is answered, CloseRows until an answer says `closed`. The actor
// sends rows below `released + capacity` only. It sends rows from `next` again when it has opened
// the stream anew, and when a ping that it sent after them was answered without them: a connection
// keeps its order, so they were lost, however slow it is. So nothing here has to arrive.

inline constexpr std::uint16_t kRowsProtocolVersion = 2;
inline constexpr std::size_t kMaxRowsEnvelopeBytes = 16 * 1024;   // first frame
inline constexpr std::size_t kMaxPayloadBytes = 4 * 1024 * 1024;  // second frame; rows unpacked
inline constexpr std::size_t kMaxStreams = kMaxRings;             // streams of one actor
inline constexpr std::size_t kWeightsChunkBytes = 32 * 1024;      // the last one is shorter
inline constexpr std::uint64_t kMaxWeightsBytes = std::uint64_t{1} << 32;

// How a batch's payload was packed.
enum class RowsPacking : std::uint8_t { kNone = 0, kZstd = 1 };

// --- actor to learner ---

// Begins a stream, or goes on with it after a reconnect.
struct OpenRows {
  std::string path;             // RemoteRingPath of the sending process
  std::uint64_t row_bytes = 0;  // RowLayout::row_bytes
  std::uint64_t spec_hash = 0;  // RowLayout::Hash
  std::uint64_t oldest = 0;     // number of the oldest row that the actor still has
};

// Consecutive rows; the payload holds them back to back, packed or not.
struct RowBatch {
  std::uint64_t stream = 0;
  std::uint64_t first = 0;  // number of the first row
  std::uint32_t count = 0;  // from 1; unpacked at most kMaxPayloadBytes
  RowsPacking packing = RowsPacking::kNone;
};

// No row follows row `end - 1`.
struct CloseRows {
  std::uint64_t stream = 0;
  std::uint64_t end = 0;  // rows of the stream
};

// The actor lives, and asks for a RowsAck. Said twice a second, and again with another number.
struct RowsPing {
  std::uint64_t number = 0;  // from 1, rises
};

// Asks for one chunk of the weights of a version that a RowsAck or a WeightsGone has named. Refused
// unless the sender has a stream.
struct WeightsGet {
  std::uint32_t version = 0;
  std::uint32_t chunk = 0;  // bytes from chunk * kWeightsChunkBytes
};

// --- learner to actor ---

struct RowsOpened {
  std::string path;
  std::uint64_t stream = 0;    // names the stream from now on; another one after each restart
  std::uint64_t next = 0;      // highest contiguous row received + 1
  std::uint64_t released = 0;  // rows below are in the replay
  std::uint64_t capacity = 0;  // rows of the learner's ring: send below released + capacity
};

struct OpenRefused {
  std::string path;
  std::string text;    // <= kMaxTextBytes: what, where, what to do
  bool final = false;  // the actor's process can never open it; false: try again later
};

// How far one stream is.
struct StreamAck {
  std::uint64_t stream = 0;
  std::uint64_t next = 0;
  std::uint64_t released = 0;
  bool closed = false;  // its CloseRows was received, and every row before the end
  bool operator==(const StreamAck&) const = default;
};

// Of the receiver's streams those that moved, or, answering a RowsPing, all of them.
struct RowsAck {
  std::vector<StreamAck> streams;     // <= kMaxStreams
  std::uint32_t weights_version = 0;  // newest published; 0: none yet, or no stream to give it to
  std::uint64_t answered = 0;         // the process's highest ping that came before; 0: none
};

// The learner has no such stream (any more): open it anew, or, when every row was released and
// CloseRows said, it is over.
struct StreamUnknown {
  std::uint64_t stream = 0;
};

// The payload holds the chunk.
struct WeightsChunk {
  std::uint32_t version = 0;
  std::uint32_t chunk = 0;
  std::uint64_t blob_bytes = 0;  // of the whole, <= kMaxWeightsBytes
  std::uint64_t hash = 0;        // xxhash64 of the whole, seeded with the version
};

// The version asked for is there no longer: begin with `newest` (0: none).
struct WeightsGone {
  std::uint32_t version = 0;
  std::uint32_t newest = 0;
};

// The asking process gets no weights: it has no stream of this run. It may ask again once it has.
struct WeightsRefused {
  std::uint32_t version = 0;
  std::string text;  // <= kMaxTextBytes: what, where, what to do
};

using RowsMessage =
    std::variant<OpenRows, RowBatch, CloseRows, RowsPing, WeightsGet, RowsOpened, OpenRefused,
                 RowsAck, StreamUnknown, WeightsChunk, WeightsGone, WeightsRefused>;

}  // namespace tetrion::wire
