#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/wire/socket_context.h"

namespace tetrion::wire {

// How a connection's handshake ended.
enum class Handshake : std::uint8_t {
  kAccepted = 0,
  kUnknownKey,  // the server allows other keys
  kNoKeys,      // one end has keys, the other none
  kWrongKey,    // made for another server's key, altered, or replayed
  kBroken,      // hung up or fell silent in the middle (as kNoKeys peers may), or no ZeroMQ
};
inline constexpr std::size_t kHandshakeKinds = 5;
// "accepted", "unknown_key", ...
const char* Name(Handshake handshake);

// Plain copies for metrics.
using HandshakeTotals = std::array<std::uint64_t, kHandshakeKinds>;

// Counts since the server's start. One thread adds, any thread reads.
class HandshakeCounts {
 public:
  void Add(Handshake handshake) {
    counts_[static_cast<std::size_t>(handshake)].fetch_add(1, std::memory_order_relaxed);
  }
  HandshakeTotals Totals() const {
    HandshakeTotals totals{};
    for (std::size_t i = 0; i < kHandshakeKinds; ++i) {
      totals[i] = counts_[i].load(std::memory_order_relaxed);
    }
    return totals;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kHandshakeKinds> counts_{};
};

// A handshake that has ended.
struct EndedHandshake {
  Handshake how;
  std::string peer;  // as PeerAddress calls it; empty where it is not known
};

// Tells how the handshakes of one socket end. Made by the socket's thread before the socket is
// bound or connected, and destroyed by it before the socket is closed; Next and handle() belong to
// one thread at a time. Its owner reads it regularly: events wait in memory without a bound,
// because ZeroMQ's own threads would wait for a full queue.
//
// The address of a peer that connected to this socket is known where its handshake was refused and
// Next had looked before its connection was closed. ZeroMQ names no peer, only descriptors: of an
// accepted connection, and of a closed one right after its failed handshake, as long as the context
// has one I/O thread. A descriptor may be closed, and be another connection's, before Next asks the
// kernel whose it is. But its end is told before it is closed: an address counts once the queue was
// found empty after it was asked for.
class HandshakeMonitor {
 public:
  HandshakeMonitor(const SocketContext& context, void* socket);
  ~HandshakeMonitor();
  HandshakeMonitor(const HandshakeMonitor&) = delete;
  HandshakeMonitor& operator=(const HandshakeMonitor&) = delete;

  // Returns at once; nothing when no handshake ended since the last call.
  std::optional<EndedHandshake> Next();
  // ZeroMQ's pointer of what to poll.
  void* handle() const { return events_; }

 private:
  struct Peer {
    std::string address;
    std::uint64_t asked_at;  // value of empties_
  };
  // The peer's address where it is certain; forgets the descriptor.
  std::string TakePeer(int fd);

  void* const socket_;
  void* const events_;
  std::map<int, Peer> peers_;      // by descriptor: no more than this process may have open
  std::uint64_t empties_ = 0;      // how often the queue was found empty
  std::optional<Handshake> held_;  // until the event that follows, which may name the descriptor
};

}  // namespace tetrion::wire
