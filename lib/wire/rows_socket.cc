#include "lib/wire/rows_socket.h"

#include <zmq.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/wire/input_bound.h"
#include "lib/wire/zmq_socket.h"

namespace tetrion::wire {
namespace {

constexpr int kServerSendHighWaterMark = 64;  // of a peer: at most 16 MiB of weights
constexpr int kServerBacklog = 1024;
constexpr int kNoReceiveHighWaterMark = 0;  // see rows_socket.h
constexpr int kHandshakeMs = 5000;
constexpr int kReconnectMs = 100;  // the engine's own attempts; doubled each time up to
constexpr int kReconnectMaxMs = 1600;

void SetRowsOptions(void* socket, int send_high_water_mark, bool secured) {
  SetOption(socket, ZMQ_LINGER, 0);
  SetOption(socket, ZMQ_SNDHWM, send_high_water_mark);
  SetOption(socket, ZMQ_RCVHWM, kNoReceiveHighWaterMark);
  SetMaxMessageBytes(socket, kMaxPayloadBytes + (secured ? kCurveOverheadBytes : 0));
  SetOption(socket, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  SetOption(socket, ZMQ_HEARTBEAT_IVL, kHeartbeatEveryMs);
  SetOption(socket, ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs);
  SetOption(socket, ZMQ_HEARTBEAT_TTL, kHeartbeatTimeoutMs);
}

// Receives what follows a routing id, or a whole message; `first` has its first frame.
RowsReceived Judge(Frame& first, void* socket, LinkStats& stats, std::string& problem) {
  RowsReceived received;
  RowsDecodeResult decoded = DecodeRows(first.bytes());
  stats.bytes_in += first.size();
  auto payload = std::make_unique<Frame>();
  bool whole = true;
  if (first.More()) {
    whole = payload->Receive(socket) && !payload->More();
    stats.bytes_in += payload->size();
    stats.bytes_in += SkipRest(*payload, socket);
  }
  ++stats.messages_in;
  if (decoded.status == DecodeStatus::kOk &&
      (!whole || HasPayload(decoded.message) != first.More())) {
    decoded.status = DecodeStatus::kUnknownBody;  // as many frames as no message of ours has
  }
  if (decoded.status == DecodeStatus::kOk) {
    received.status = ReceiveStatus::kMessage;
    received.message = std::move(decoded.message);
    received.sender = decoded.sender;
    if (first.More()) received.payload = Payload(std::move(payload));
    return received;
  }
  ++stats.malformed;
  const bool wrong_version = decoded.status == DecodeStatus::kWrongVersion;
  received.status = wrong_version ? ReceiveStatus::kWrongVersion : ReceiveStatus::kMalformed;
  problem = wrong_version ? RowsWrongVersionText(decoded.have_version)
                          : std::string("message refused: ") + Name(decoded.status);
  return received;
}

// Sends the frames after the routing id, if the socket has one. False when there is no room.
bool SendFrames(void* socket, const std::vector<std::byte>& envelope, bool has_payload,
                std::span<const std::byte> payload, LinkStats& stats) {
  const int more = has_payload ? ZMQ_SNDMORE : 0;
  if (zmq_send(socket, envelope.data(), envelope.size(), ZMQ_DONTWAIT | more) < 0) return false;
  if (has_payload && zmq_send(socket, payload.data(), payload.size(), ZMQ_DONTWAIT) < 0) {
    return false;
  }
  ++stats.messages_out;
  stats.bytes_out += envelope.size() + payload.size();
  return true;
}

// The payload is there exactly where its message has one, and short enough for the other end.
void CheckPayload(const RowsMessage& message, std::span<const std::byte> payload) {
  TETRION_CHECK(HasPayload(message) || payload.empty(), "a message without payload was given one");
  TETRION_CHECK(payload.size() <= kMaxPayloadBytes, "a payload is longer than the engine takes");
}

}  // namespace

Payload::Payload() = default;
Payload::Payload(std::unique_ptr<Frame> frame) : frame_(std::move(frame)) {}
Payload::Payload(Payload&&) noexcept = default;
Payload& Payload::operator=(Payload&&) noexcept = default;
Payload::~Payload() = default;

std::span<const std::byte> Payload::bytes() const {
  return frame_ == nullptr ? std::span<const std::byte>() : frame_->bytes();
}

struct RowsServer::Impl : Socket {
  explicit Impl(const ServerSecurity& security) : Socket(ZMQ_ROUTER, nullptr) {
    if (security.on()) authenticator = std::make_unique<Authenticator>(*context, socket, security);
  }
  std::unique_ptr<Authenticator> authenticator;  // null: plain
  std::unique_ptr<InputBound> input;
};

RowsServer::RowsServer(const Config& config)
    : config_(config), impl_(std::make_unique<Impl>(config.security)) {
  void* socket = impl_->socket;
  SetRowsOptions(socket, kServerSendHighWaterMark, config_.security.on());
  SetOption(socket, ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket, ZMQ_BACKLOG, kServerBacklog);
  AllowIpv6(socket, config_.endpoint);
  if (zmq_bind(socket, config_.endpoint.c_str()) != 0) {
    throw Error(ExitCode::kUsage,
                "cannot bind the socket for remote rows to '" + config_.endpoint +
                    "': " + zmq_strerror(zmq_errno()) +
                    "; give --rows-bind a free port of this machine, like tcp://0.0.0.0:9001");
  }
  endpoint_ = BoundEndpoint(socket);
  impl_->input = std::make_unique<InputBound>(PortOf(endpoint_));
}

RowsServer::~RowsServer() = default;

HandshakeTotals RowsServer::handshakes() const {
  return config_.security.on() ? config_.security.handshakes->Totals() : HandshakeTotals{};
}

Readiness RowsServer::Poll(int timeout_ms, int extra_fd) {
  hang_ups_ +=
      static_cast<std::uint64_t>(impl_->input->Look(config_.most_input_bytes + credit_bytes_));
  return PollSocket(impl_->socket, timeout_ms, extra_fd);
}

RowsReceived RowsServer::Receive() {
  Frame id, first;
  if (!id.Receive(impl_->socket)) return {};
  if (id.More()) first.Receive(impl_->socket);
  const int connection = first.Connection();
  const std::uint64_t before = stats_.bytes_in;
  RowsReceived received = Judge(first, impl_->socket, stats_, problem_);
  impl_->input->Took(connection, stats_.bytes_in - before);
  received.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return received;
}

SendStatus RowsServer::Send(const PeerId& peer, const RowsMessage& message,
                            std::span<const std::byte> payload) {
  CheckPayload(message, payload);
  const std::vector<std::byte> envelope = EncodeRows(message, {.run_id = config_.run_id});
  if (zmq_send(impl_->socket, peer.data(), peer.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    ++stats_.dropped_out;
    return zmq_errno() == EAGAIN ? SendStatus::kFull : SendStatus::kNoPeer;
  }
  if (SendFrames(impl_->socket, envelope, HasPayload(message), payload, stats_)) {
    return SendStatus::kOk;
  }
  ++stats_.dropped_out;
  return SendStatus::kNoPeer;
}

struct RowsClient::Impl : Socket {
  explicit Impl(const Config& config) : Socket(ZMQ_DEALER, config.context) {
    if (config.context == nullptr) monitor = std::make_unique<HandshakeMonitor>(*context, socket);
  }
  std::unique_ptr<HandshakeMonitor> monitor;  // null: of a shared context
};

RowsClient::RowsClient(const Config& config, const Clock& clock)
    : config_(config), backoff_(clock, config.backoff) {
  Open();
}

RowsClient::~RowsClient() = default;

void RowsClient::Open() {
  impl_.reset();
  impl_ = std::make_unique<Impl>(config_);
  SetRowsOptions(impl_->socket, config_.send_high_water_mark, config_.security.on());
  Secure(impl_->socket, config_.security);
  SetOption(impl_->socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(impl_->socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  AllowIpv6(impl_->socket, config_.endpoint);
  if (zmq_connect(impl_->socket, config_.endpoint.c_str()) != 0) {
    throw Error(ExitCode::kUsage, "cannot connect to the learner's rows at '" + config_.endpoint +
                                      "': " + zmq_strerror(zmq_errno()) +
                                      "; the learner's --rows-advertise looks like host:9001");
  }
}

SendStatus RowsClient::Send(const RowsMessage& message, std::span<const std::byte> payload) {
  CheckPayload(message, payload);
  const std::vector<std::byte> envelope = EncodeRows(message, config_.identity);
  if (SendFrames(impl_->socket, envelope, HasPayload(message), payload, stats_)) {
    return SendStatus::kOk;
  }
  ++stats_.dropped_out;
  return SendStatus::kFull;
}

Readiness RowsClient::Poll(int timeout_ms, int extra_fd) {
  return PollSocket(impl_->socket, timeout_ms, extra_fd);
}

RowsReceived RowsClient::Receive(int timeout_ms) {
  Frame first;
  if (!first.Receive(impl_->socket)) {
    if (timeout_ms <= 0 || !Poll(timeout_ms).socket || !first.Receive(impl_->socket)) return {};
  }
  RowsReceived received = Judge(first, impl_->socket, stats_, problem_);
  if (received.status == ReceiveStatus::kMessage) backoff_.Reset();
  return received;
}

const std::string& RowsClient::HandshakeProblem() {
  while (impl_->monitor != nullptr) {
    const std::optional<Handshake> ended = impl_->monitor->Next();
    if (!ended.has_value()) break;
    handshake_problem_ = ClientProblem(*ended, config_.endpoint, config_.security);
  }
  return handshake_problem_;
}

bool RowsClient::Reopen() {
  return Reopen(config_.endpoint, config_.security.server_key);
}

bool RowsClient::Reopen(const std::string& endpoint, const std::string& server_key) {
  if (!backoff_.TryNow()) return false;
  config_.endpoint = endpoint;
  config_.security.server_key = server_key;
  Open();
  ++stats_.reconnects;
  return true;
}

}  // namespace tetrion::wire
