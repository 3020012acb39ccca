#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/wire/backoff.h"
#include "lib/wire/codec.h"
#include "lib/wire/messages.h"
#include "lib/wire/security.h"
#include "lib/wire/socket_context.h"

namespace tetrion::wire {

// The control channel: one ROUTER at the coordinator, one DEALER at every actor and learner. Each
// object belongs to one thread. ZeroMQ appears nowhere else.

// Routing id of a connection, as the ROUTER gave it. A peer that reconnects gets another one.
using PeerId = std::string;

class Dealer;
class Router;

// Plain counts since construction; the owner turns them into metrics.
struct LinkStats {
  std::uint64_t messages_in = 0, messages_out = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t malformed = 0;    // messages that Decode refused
  std::uint64_t reconnects = 0;   // client: times the socket was destroyed and opened again
  std::uint64_t dropped_out = 0;  // sends that found no room or no peer
};

enum class SendStatus : std::uint8_t {
  kOk = 0,
  kFull,    // high-water mark: the peer does not read; say it again later
  kNoPeer,  // server only: that connection is gone
};

struct Readiness {
  bool socket = false;
  bool extra_fd = false;
};

// Policy of the coordinator's ROUTER: LINGER 0 (what matters was acknowledged or is repeated), send
// high-water mark of 128 messages a peer (then Send says kFull and the peer repeats), MAXMSGSIZE
// 64 KiB (longer: the engine drops that connection, the others go on), ROUTER_MANDATORY (an unknown
// peer is a result, not a silent drop), BACKLOG 4,096 (thousands of members reconnect together),
// HANDSHAKE_IVL 5 s and the kernel's TCP keepalive, 11 s (half-open connections do not gather). Two
// things are left out because with them a connection's input can stop, and libzmq 4.3 aborts the
// process when such a peer hangs up: ROUTER_HANDOVER (no member names its connection) and a receive
// high-water mark, which would not bound the parts of a message that never ends either: the owner
// watches its memory and calls Rebind.
class ControlServer {
 public:
  // Binds at once. `endpoint`: "tcp://127.0.0.1:0" picks a port; "ipc:///path" is held by a flock
  // of "/path.lock", because ZeroMQ would take the path from a living server. `run_id` goes into
  // every answer. `security`: none, or who may connect. Throws Error(kUsage) when the address is in
  // use or unusable, kTryAgain for want of files or room.
  explicit ControlServer(const std::string& endpoint, std::uint64_t run_id = 0,
                         const ServerSecurity& security = {});
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // What the socket is bound to, with the chosen port.
  const std::string& endpoint() const { return endpoint_; }

  // Blocks until a message is there, `extra_fd` (if >= 0) is readable, or `timeout_ms` has passed.
  Readiness Poll(int timeout_ms, int extra_fd = -1);

  struct Received {
    PeerId peer;
    std::vector<std::byte> bytes;
  };
  // Returns at once; nothing when no message waits. Feed `bytes` to Decode and count failures with
  // CountMalformed.
  std::optional<Received> Receive();
  // Returns at once.
  [[nodiscard]] SendStatus Send(const PeerId& peer, const Message& message);
  // Closes every connection with all that is queued and listens again at the same address; members
  // reconnect by themselves. Blocks for milliseconds. Throws Error(kTryAgain) when the address was
  // taken meanwhile.
  void Rebind();
  void CountMalformed() { ++stats_.malformed; }
  const LinkStats& stats() const { return stats_; }
  // All zero without security.
  HandshakeTotals handshakes() const;

 private:
  class PathLock;
  void Bind(const std::string& endpoint);

  const std::uint64_t run_id_;
  const ServerSecurity security_;
  std::unique_ptr<PathLock> path_lock_;  // of an ipc address, else null
  std::unique_ptr<Router> router_;
  std::string endpoint_;
  LinkStats stats_;
};

enum class ReceiveStatus : std::uint8_t {
  kMessage = 0,
  kTimeout,
  kMalformed,     // dropped and counted
  kWrongVersion,  // text in ControlClient::problem(); exit with ExitCode::kConfig
};

struct ReceiveResult {
  ReceiveStatus status = ReceiveStatus::kTimeout;
  Message message;  // with kMessage
  Identity sender;  // with kMessage
};

// Policy of an actor's or learner's DEALER: LINGER 0, a send high-water mark of 1,024 messages,
// MAXMSGSIZE 64 KiB, TCP keepalive 11 s. The engine reconnects by itself after a dropped
// connection, 100 ms to 800 ms apart; an owner who has heard nothing for its own time-out calls
// Reopen, which also drops what was queued (every message is repeated by its sender until it is
// answered).
class ControlClient {
 public:
  struct Config {
    std::string endpoint;
    Backoff::Config backoff;
    Identity identity;                       // goes into every message
    std::shared_ptr<SocketContext> context;  // shared with other clients; null: one of its own
    ClientSecurity security;                 // none: plain
  };
  // Connects in the background. Throws Error(kUsage) for an address that cannot be parsed.
  explicit ControlClient(const Config& config, const Clock& clock = MonotonicClock::Get());
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // From now on messages say that their sender belongs to this run.
  void JoinRun(std::uint64_t run_id) { identity_.run_id = run_id; }
  // Returns at once; kFull while the queue to the coordinator has no room.
  [[nodiscard]] SendStatus Send(const Message& message);
  // Blocks until a message is there, `extra_fd` (if >= 0) is readable, or `timeout_ms` has passed.
  Readiness Poll(int timeout_ms, int extra_fd = -1);
  // Blocks at most `timeout_ms`; 0 returns at once.
  ReceiveResult Receive(int timeout_ms);
  // Destroys the socket and opens a new one, unless the last reopening was too recent (back-off
  // with jitter; a received message ends it). Returns whether it did. Blocks for milliseconds, and
  // for 0.1 s while a host name is being looked up.
  bool Reopen();
  // The same with another address, read anew from endpoints.json.
  bool Reopen(const std::string& endpoint);
  const std::string& endpoint() const;
  // What was wrong with the last refused message, for people.
  const std::string& problem() const { return problem_; }
  // What was wrong with the connection's last handshake, for people; empty when it went well or is
  // still to come. A client of a shared context does not watch its handshakes: with thousands of
  // them that would be thousands of sockets more.
  const std::string& HandshakeProblem();
  const LinkStats& stats() const { return stats_; }

 private:
  Identity identity_;
  std::unique_ptr<Dealer> dealer_;
  std::string problem_;
  LinkStats stats_;
};

}  // namespace tetrion::wire
