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
// How a refused peer's address becomes known: ZeroMQ tells descriptors, not peers: one when a
// connection is accepted, and the same one when it ends, right after the failed handshake (with one
// I/O thread a context). Next asks the kernel for the address when it reads that a connection was
// accepted. By then the descriptor may already belong to another connection. But ZeroMQ tells the
// end of a connection before it closes the descriptor: if the queue was empty after Next had asked,
// the address is right; otherwise it stays unknown.
class HandshakeMonitor {
 public:
  HandshakeMonitor(const SocketContext& context, void* socket);
  ~HandshakeMonitor();
  HandshakeMonitor(const HandshakeMonitor&) = delete;
  HandshakeMonitor& operator=(const HandshakeMonitor&) = delete;

  // Returns at once; nothing when no handshake ended since the last call. One that failed may be
  // told by a later call, when ZeroMQ has also told that its connection ended.
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
