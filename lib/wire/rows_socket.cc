#include "lib/wire/rows_socket.h"

#include <optional>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/wire/channel_ends.h"
#include "lib/wire/input_bound.h"
#include "lib/wire/zmq_socket.h"

namespace tetrion::wire {
namespace {

constexpr ChannelPolicy kDataChannel = {
    .most_frame_bytes = kMaxPayloadBytes,
    .reconnect_most_ms = 1600,
    .heartbeat_every_ms = kHeartbeatEveryMs,
    .heartbeat_timeout_ms = kHeartbeatTimeoutMs,
};
constexpr int kServerSendHighWaterMark = 64;  // of a peer: at most 2 MiB of weights
constexpr int kServerBacklog = 1024;

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

// The payload is there exactly where its message has one, and short enough for the other end.
std::optional<std::span<const std::byte>> Checked(const RowsMessage& message,
                                                  std::span<const std::byte> payload) {
  TETRION_CHECK(payload.size() <= kMaxPayloadBytes, "a payload is longer than the engine takes");
  if (HasPayload(message)) return payload;
  TETRION_CHECK(payload.empty(), "a message without payload was given one");
  return std::nullopt;
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

RowsServer::RowsServer(const Config& config)
    : config_(config),
      router_(
          std::make_unique<Router>(config.endpoint, config.security, kDataChannel,
                                   Router::Config{.what = "the socket for remote rows",
                                                  .bind_like = "--rows-bind tcp://0.0.0.0:9001",
                                                  .send_high_water_mark = kServerSendHighWaterMark,
                                                  .backlog = kServerBacklog})),
      endpoint_(router_->Endpoint()) {
  input_ = std::make_unique<InputBound>(PortOf(endpoint_));
}

RowsServer::~RowsServer() = default;

HandshakeTotals RowsServer::handshakes() const {
  return config_.security.on() ? config_.security.handshakes->Totals() : HandshakeTotals{};
}

Readiness RowsServer::Poll(int timeout_ms, int extra_fd) {
  hang_ups_ += static_cast<std::uint64_t>(input_->Look(config_.most_input_bytes + credit_bytes_));
  return PollSocket(router_->socket(), timeout_ms, extra_fd);
}

RowsReceived RowsServer::Receive() {
  Frame id, first;
  if (!id.Receive(router_->socket())) return {};
  if (id.More()) first.Receive(router_->socket());
  const int connection = first.Connection();
  const std::uint64_t before = stats_.bytes_in;
  RowsReceived received = Judge(first, router_->socket(), stats_, problem_);
  input_->Took(connection, stats_.bytes_in - before);
  received.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return received;
}

SendStatus RowsServer::Send(const PeerId& peer, const RowsMessage& message,
                            std::span<const std::byte> payload) {
  return router_->Send(
      peer, {EncodeRows(message, {.run_id = config_.run_id}), Checked(message, payload)}, stats_);
}

RowsClient::RowsClient(const Config& config, const Clock& clock)
    : identity_(config.identity),
      dealer_(std::make_unique<Dealer>(
          kDataChannel,
          Dealer::Config{.endpoint = config.endpoint,
                         .whom = "the learner's rows",
                         .looks_like = "the learner's --rows-advertise looks like host:9001",
                         .backoff = config.backoff,
                         .context = config.context,
                         .security = config.security,
                         .send_high_water_mark = config.send_high_water_mark},
          clock)) {}

RowsClient::~RowsClient() = default;

SendStatus RowsClient::Send(const RowsMessage& message, std::span<const std::byte> payload) {
  return dealer_->Send({EncodeRows(message, identity_), Checked(message, payload)}, stats_);
}

Readiness RowsClient::Poll(int timeout_ms, int extra_fd) {
  return PollSocket(dealer_->socket(), timeout_ms, extra_fd);
}

RowsReceived RowsClient::Receive(int timeout_ms) {
  Frame first;
  if (!dealer_->Receive(first, timeout_ms)) return {};
  RowsReceived received = Judge(first, dealer_->socket(), stats_, problem_);
  if (received.status == ReceiveStatus::kMessage) dealer_->Heard();
  return received;
}

const std::string& RowsClient::endpoint() const {
  return dealer_->endpoint();
}

const std::string& RowsClient::server_key() const {
  return dealer_->server_key();
}

const std::string& RowsClient::HandshakeProblem() {
  return dealer_->HandshakeProblem();
}

bool RowsClient::refused() const {
  return dealer_->refused();
}

bool RowsClient::Reopen() {
  return Reopen(endpoint(), server_key());
}

bool RowsClient::Reopen(const std::string& endpoint, const std::string& server_key) {
  return dealer_->Reopen(endpoint, server_key, stats_);
}

}  // namespace tetrion::wire
