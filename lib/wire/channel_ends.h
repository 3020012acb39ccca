#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/wire/backoff.h"
#include "lib/wire/handshakes.h"
#include "lib/wire/security.h"
#include "lib/wire/socket.h"
#include "lib/wire/zmq_socket.h"

namespace tetrion::wire {

// The two ends of a channel below its messages: the control channel (socket.h) and the data channel
// (rows_socket.h) are each a Router and many Dealers, and say there why they are set as they are.
// Included by their sources alone. Each object belongs to one thread.

// What a channel sets at both its ends, besides LINGER 0, no receive high-water mark and 5 s for a
// handshake.
struct ChannelPolicy {
  std::int64_t most_frame_bytes;  // without what CURVE adds
  int reconnect_most_ms;          // the engine's own attempts start 100 ms apart and double
  int heartbeat_every_ms = 0;     // ZeroMQ's own; 0: the kernel's TCP keepalive, 11 s
  int heartbeat_timeout_ms = 0;
};

// A message as its sender hands it over.
struct Outgoing {
  std::span<const std::byte> envelope;
  std::optional<std::span<const std::byte>> payload;  // nothing: a message of one frame
};

// A server's ROUTER.
class Router {
 public:
  struct Config {
    std::string what;          // for people: "the control socket"
    std::string bind_like;     // for people: the option with an address
    int send_high_water_mark;  // messages a peer
    int backlog;
  };
  // Binds at once. Throws Error(kUsage) when the address is in use or unusable.
  Router(const std::string& endpoint, const ServerSecurity& security, const ChannelPolicy& policy,
         const Config& config);

  void* socket() const { return socket_.socket; }
  // What the socket is bound to, with the chosen port.
  std::string Endpoint() const { return BoundEndpoint(socket()); }
  // Returns at once. Copies the frames.
  [[nodiscard]] SendStatus Send(const PeerId& peer, const Outgoing& message, LinkStats& stats);

 private:
  Socket socket_;
  std::unique_ptr<Authenticator> authenticator_;  // null: plain
};

// A client's DEALER, which can be opened anew.
class Dealer {
 public:
  struct Config {
    std::string endpoint;
    std::string whom;        // for people: "the coordinator"
    std::string looks_like;  // for people: what an address looks like
    Backoff::Config backoff;
    std::shared_ptr<SocketContext> context;  // null: one for each socket
    ClientSecurity security;
    int send_high_water_mark;
  };
  // Connects in the background. Throws Error(kUsage) for an address that cannot be parsed.
  Dealer(const ChannelPolicy& policy, Config config, const Clock& clock);

  // Null after a reopening that has failed: nothing is sent or heard until one succeeds.
  void* socket() const { return open_ != nullptr ? open_->socket.socket : nullptr; }
  const std::string& endpoint() const { return config_.endpoint; }
  const std::string& server_key() const { return config_.security.server_key; }
  // Returns at once; kFull while the queue to the server has no room. Copies the frames.
  [[nodiscard]] SendStatus Send(const Outgoing& message, LinkStats& stats);
  // Blocks at most `timeout_ms` for the first frame of a message; false when none came.
  bool Receive(Frame& first, int timeout_ms);
  // A message of ours came: the next reopening need not wait, and looks a name up as this one did.
  void Heard() {
    backoff_.Reset();
    answered_ = true;
  }
  // Destroys the socket with all that is queued and opens one to that address and key, unless the
  // last reopening was too recent. Returns whether it did. Blocks for milliseconds, and for 0.1 s
  // while a host name is being looked up. ZeroMQ takes one address of a name, in one family: that
  // is IPv4's at first, and until something was heard the other family's with each reopening.
  // Throws Error(kTryAgain) for want of files.
  bool Reopen(const std::string& endpoint, const std::string& server_key, LinkStats& stats);
  // What was wrong with the last handshake, for people; empty when it went well, is still to come,
  // or the context is shared.
  const std::string& HandshakeProblem();
  // Whether the present connection's last handshake, of those that HandshakeProblem has told of,
  // went wrong.
  bool refused() const { return refused_; }

 private:
  struct Opened {
    explicit Opened(const Config& config);
    Socket socket;
    std::unique_ptr<HandshakeMonitor> monitor;  // null: of a shared context
  };
  void Open();

  const ChannelPolicy policy_;
  Config config_;
  Backoff backoff_;
  std::unique_ptr<Opened> open_;
  bool ipv6_ = false;      // the family that a name is looked up in
  bool answered_ = false;  // this address has, in that family
  std::string handshake_problem_;
  bool refused_ = false;
};

}  // namespace tetrion::wire
