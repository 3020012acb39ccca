#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/wire/backoff.h"
#include "lib/wire/rows_codec.h"
#include "lib/wire/rows_messages.h"
#include "lib/wire/security.h"
#include "lib/wire/socket.h"
#include "lib/wire/socket_context.h"

namespace tetrion::wire {

// The data channel: one ROUTER at the learner, one DEALER at every actor of another host. Each
// object belongs to one thread.
//
// Policy of both ends: LINGER 0 (what matters is acknowledged or sent again), MAXMSGSIZE 4 MiB a
// frame (longer: the engine drops the connection), ZeroMQ's heartbeats (a connection that is silent
// for kHeartbeatTimeoutMs is dropped, and the kernel's keepalive is not needed) and no receive
// high-water mark: with one a connection's input can stop, and libzmq 4.3 aborts the process when a
// heartbeat falls due then. What a server holds of peers that keep to the protocol is bounded by
// the credit it gives, a client's by what it has asked for. For peers that do not, as with a
// message of endless frames, a server hangs up on the connection that has the most input waiting
// while all have more than `most_input_bytes` and the credit (lib/wire/input_bound.h), from its
// owner's first Poll on.
inline constexpr int kHeartbeatEveryMs = 2000;
// Longer than one message may travel over a slow uplink: only whole ones count as signs of life.
inline constexpr int kHeartbeatTimeoutMs = 30'000;

class Frame;
class InputBound;

// The second frame of a message as the engine received it. Move-only; owns the bytes.
class Payload {
 public:
  Payload();
  explicit Payload(std::unique_ptr<Frame> frame);
  Payload(Payload&&) noexcept;
  Payload& operator=(Payload&&) noexcept;
  ~Payload();
  std::span<const std::byte> bytes() const;

 private:
  std::unique_ptr<Frame> frame_;  // null: no bytes
};

struct RowsReceived {
  ReceiveStatus status = ReceiveStatus::kTimeout;  // kMalformed: dropped and counted
  PeerId peer;                                     // server: who said it
  RowsMessage message;                             // with kMessage
  Identity sender;                                 // with kMessage
  Payload payload;                                 // with kMessage, empty unless HasPayload
};

class RowsServer {
 public:
  struct Config {
    std::string endpoint;      // "tcp://0.0.0.0:9001"; port 0 picks one
    std::uint64_t run_id = 0;  // goes into every message; 0: see JoinRun
    ServerSecurity security;   // none: plain
    std::uint64_t most_input_bytes = std::uint64_t{32} << 20;  // beside the credit
  };
  // Binds at once. Throws Error(kUsage) when the address is in use or unusable.
  explicit RowsServer(const Config& config);
  ~RowsServer();
  RowsServer(const RowsServer&) = delete;
  RowsServer& operator=(const RowsServer&) = delete;

  // From now on messages say that the learner belongs to this run.
  void JoinRun(std::uint64_t run_id) { config_.run_id = run_id; }
  // From now on peers have leave to send so much before the owner has read any of it.
  void GiveCredit(std::uint64_t bytes) { credit_bytes_ = bytes; }
  // What the socket is bound to, with the chosen port.
  const std::string& endpoint() const { return endpoint_; }
  // Blocks until a message is there, `extra_fd` (if >= 0) is readable, or `timeout_ms` has passed.
  // Looks at what waits first, so that the owner calls it regularly.
  Readiness Poll(int timeout_ms, int extra_fd = -1);
  // Returns at once; kTimeout when no message waits.
  RowsReceived Receive();
  // Returns at once. Copies `payload`, which only messages that HasPayload have.
  [[nodiscard]] SendStatus Send(const PeerId& peer, const RowsMessage& message,
                                std::span<const std::byte> payload = {});
  // What was wrong with the last refused message, for people.
  const std::string& problem() const { return problem_; }
  const LinkStats& stats() const { return stats_; }
  // What clients know it by; empty without security.
  const std::string& public_key() const { return config_.security.own.public_key; }
  // All zero without security.
  HandshakeTotals handshakes() const;
  // Connections that were closed for their input.
  std::uint64_t hang_ups() const { return hang_ups_; }

 private:
  Config config_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<InputBound> input_;
  std::string endpoint_;
  std::string problem_;
  LinkStats stats_;
  std::uint64_t credit_bytes_ = 0, hang_ups_ = 0;
};

class RowsClient {
 public:
  struct Config {
    std::string endpoint;  // "tcp://host:9001"
    Backoff::Config backoff;
    Identity identity;                       // goes into every message
    std::shared_ptr<SocketContext> context;  // shared with other clients; null: one of its own
    int send_high_water_mark = 64;           // messages that wait for the network
    ClientSecurity security;                 // none: plain
  };
  // Connects in the background. Throws Error(kUsage) for an address that cannot be parsed.
  explicit RowsClient(const Config& config, const Clock& clock = MonotonicClock::Get());
  ~RowsClient();
  RowsClient(const RowsClient&) = delete;
  RowsClient& operator=(const RowsClient&) = delete;

  // Returns at once. Copies `payload`. kFull while the queue to the learner has no room.
  [[nodiscard]] SendStatus Send(const RowsMessage& message,
                                std::span<const std::byte> payload = {});
  // Blocks until a message is there, `extra_fd` (if >= 0) is readable, or `timeout_ms` has passed.
  Readiness Poll(int timeout_ms, int extra_fd = -1);
  // Blocks at most `timeout_ms`; 0 returns at once.
  RowsReceived Receive(int timeout_ms);
  // As ControlClient::Reopen: destroys the socket with all that is queued and opens a new one,
  // unless the last reopening was too recent. Returns whether it did. Blocks as that does.
  bool Reopen();
  // The same to another address, or a server with another key: the learner has moved. `server_key`
  // is empty without security.
  bool Reopen(const std::string& endpoint, const std::string& server_key);
  const std::string& endpoint() const;
  const std::string& server_key() const;
  // What was wrong with the last refused message, for people.
  const std::string& problem() const { return problem_; }
  // As ControlClient::HandshakeProblem.
  const std::string& HandshakeProblem();
  // Whether it is the present connection's: nothing comes over it until it is opened anew.
  bool refused() const;
  const LinkStats& stats() const { return stats_; }

 private:
  const Identity identity_;
  std::unique_ptr<Dealer> dealer_;
  std::string problem_;
  LinkStats stats_;
};

}  // namespace tetrion::wire
