#include "lib/wire/channel_ends.h"

#include <zmq.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion::wire {
namespace {

// None: libzmq 4.3 aborts the process (!_io_error in stream_engine_base.cpp) when a peer hangs up
// while its queue is full and the answer to one of its pings falls due. Owners bound the input.
constexpr int kReceiveHighWaterMark = 0;
constexpr int kHandshakeMs = 5000;
constexpr int kReconnectMs = 100;
constexpr int kKeepAliveIdleS = 5;  // of a silent TCP connection, before the kernel asks
constexpr int kKeepAliveEveryS = 2;
constexpr int kKeepAliveTries = 3;
constexpr int kMostWaitMs = 100;  // of a client for a socket that it has closed

void SetCommonOptions(void* socket, const ChannelPolicy& policy, int send_high_water_mark,
                      bool secured) {
  SetOption(socket, ZMQ_LINGER, 0);
  SetOption(socket, ZMQ_SNDHWM, send_high_water_mark);
  SetOption(socket, ZMQ_RCVHWM, kReceiveHighWaterMark);
  SetMaxMessageBytes(socket, policy.most_frame_bytes + (secured ? kCurveOverheadBytes : 0));
  SetOption(socket, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  if (policy.heartbeat_every_ms > 0) {
    SetOption(socket, ZMQ_HEARTBEAT_IVL, policy.heartbeat_every_ms);
    SetOption(socket, ZMQ_HEARTBEAT_TIMEOUT, policy.heartbeat_timeout_ms);
    SetOption(socket, ZMQ_HEARTBEAT_TTL, policy.heartbeat_timeout_ms);
  } else {
    SetOption(socket, ZMQ_TCP_KEEPALIVE, 1);
    SetOption(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepAliveIdleS);
    SetOption(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepAliveEveryS);
    SetOption(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepAliveTries);
  }
}

// Sends what follows the routing id, if the socket has one. False when there is no room.
bool SendFrames(void* socket, const Outgoing& message, LinkStats& stats) {
  const auto& [envelope, payload] = message;
  const int more = payload.has_value() ? ZMQ_SNDMORE : 0;
  if (zmq_send(socket, envelope.data(), envelope.size(), ZMQ_DONTWAIT | more) < 0 ||
      (payload.has_value() &&
       zmq_send(socket, payload->data(), payload->size(), ZMQ_DONTWAIT) < 0)) {
    ++stats.dropped_out;
    return false;
  }
  ++stats.messages_out;
  stats.bytes_out += envelope.size() + (payload.has_value() ? payload->size() : 0);
  return true;
}

}  // namespace

Router::Router(const std::string& endpoint, const ServerSecurity& security,
               const ChannelPolicy& policy, const Config& config)
    : socket_(ZMQ_ROUTER, nullptr) {
  if (security.on()) {
    authenticator_ = std::make_unique<Authenticator>(*socket_.context, socket(), security);
  }
  SetCommonOptions(socket(), policy, config.send_high_water_mark, security.on());
  SetOption(socket(), ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket(), ZMQ_BACKLOG, config.backlog);
  AllowIpv6(socket(), endpoint);
  if (zmq_bind(socket(), endpoint.c_str()) == 0) return;
  const int error = zmq_errno();
  if (IsWantOfResources(error)) {
    throw Error(ExitCode::kTryAgain,
                "cannot bind " + config.what + " to '" + endpoint + "': " + zmq_strerror(error));
  }
  throw Error(ExitCode::kUsage,
              "cannot bind " + config.what + " to '" + endpoint + "': " + zmq_strerror(error) +
                  (error == EADDRINUSE
                       ? "; another process listens there: stop it, or choose a free port with "
                       : "; give an address of this machine, like ") +
                  config.bind_like);
}

SendStatus Router::Send(const PeerId& peer, const Outgoing& message, LinkStats& stats) {
  if (zmq_send(socket(), peer.data(), peer.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    ++stats.dropped_out;
    return zmq_errno() == EAGAIN ? SendStatus::kFull : SendStatus::kNoPeer;
  }
  return SendFrames(socket(), message, stats) ? SendStatus::kOk : SendStatus::kNoPeer;
}

// Each socket has a context of its own, even after a reopening: in one that it shared with its
// predecessors it would wait for all their names to be looked up, one after the other.
Dealer::Opened::Opened(const Config& config)
    : socket(ZMQ_DEALER, config.context != nullptr
                             ? config.context
                             : std::make_shared<SocketContext>(
                                   SocketContext::Config{.most_wait_ms = kMostWaitMs})) {
  if (config.context != nullptr) return;
  monitor = std::make_unique<HandshakeMonitor>(*socket.context, socket.socket);
}

Dealer::Dealer(const ChannelPolicy& policy, Config config, const Clock& clock)
    : policy_(policy), config_(std::move(config)), backoff_(clock, config_.backoff) {
  Open();
}

void Dealer::Open() {
  open_.reset();
  refused_ = false;
  open_ = std::make_unique<Opened>(config_);
  SetCommonOptions(socket(), policy_, config_.send_high_water_mark, config_.security.on());
  Secure(socket(), config_.security);
  SetOption(socket(), ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(socket(), ZMQ_RECONNECT_IVL_MAX, policy_.reconnect_most_ms);
  AllowIpv6(socket(), config_.endpoint);
  if (ipv6_) SetOption(socket(), ZMQ_IPV6, 1);
  if (zmq_connect(socket(), config_.endpoint.c_str()) == 0) return;
  throw Error(ExitCode::kUsage, "cannot connect to " + config_.whom + " at '" + config_.endpoint +
                                    "': " + zmq_strerror(zmq_errno()) + "; " + config_.looks_like);
}

SendStatus Dealer::Send(const Outgoing& message, LinkStats& stats) {
  return SendFrames(socket(), message, stats) ? SendStatus::kOk : SendStatus::kFull;
}

bool Dealer::Receive(Frame& first, int timeout_ms) {
  if (first.Receive(socket())) return true;
  return timeout_ms > 0 && PollSocket(socket(), timeout_ms, -1).socket && first.Receive(socket());
}

bool Dealer::Reopen(const std::string& endpoint, const std::string& server_key, LinkStats& stats) {
  if (!backoff_.TryNow()) return false;
  if (endpoint != config_.endpoint) {
    ipv6_ = answered_ = false;
  } else if (!answered_ && NamesHost(endpoint)) {
    ipv6_ = !ipv6_;
  }
  config_.endpoint = endpoint;
  config_.security.server_key = server_key;
  Open();
  ++stats.reconnects;
  return true;
}

const std::string& Dealer::HandshakeProblem() {
  while (open_ != nullptr && open_->monitor != nullptr) {
    const std::optional<EndedHandshake> ended = open_->monitor->Next();
    if (!ended.has_value()) break;
    handshake_problem_ = ClientProblem(ended->how, config_.endpoint, config_.security);
    refused_ = !handshake_problem_.empty();
  }
  return handshake_problem_;
}

}  // namespace tetrion::wire
