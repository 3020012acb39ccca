#include "lib/wire/handshakes.h"

#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/wire/peer_address.h"

namespace tetrion::wire {
namespace {

constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                        ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;

// An event's first frame. The second, an address, says nothing about the peer.
struct Event {
  std::uint16_t kind;
  std::uint32_t value;
};
constexpr std::size_t kEventBytes = 6;

std::optional<Event> ReceiveEvent(void* events) {
  std::uint8_t frame[kEventBytes];
  if (zmq_recv(events, frame, sizeof(frame), ZMQ_DONTWAIT) != sizeof(frame)) return std::nullopt;
  char address[256];
  zmq_recv(events, address, sizeof(address), ZMQ_DONTWAIT);
  Event event;
  std::memcpy(&event.kind, frame, sizeof(event.kind));
  std::memcpy(&event.value, frame + sizeof(event.kind), sizeof(event.value));
  return event;
}

std::optional<Handshake> Meaning(const Event& event) {
  switch (event.kind) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return Handshake::kAccepted;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return Handshake::kUnknownKey;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      if (event.value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return Handshake::kNoKeys;
      if (event.value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC) return Handshake::kWrongKey;
      return Handshake::kBroken;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return Handshake::kBroken;
    default:
      return std::nullopt;  // a connection begins or ends, or the monitor itself ended
  }
}

// Whether the connection ends with it at once; a client with an unknown key is told first.
bool Closes(Handshake handshake) {
  return handshake != Handshake::kAccepted && handshake != Handshake::kUnknownKey;
}

}  // namespace

const char* Name(Handshake handshake) {
  constexpr std::array<const char*, kHandshakeKinds> kNames = {"accepted", "unknown_key", "no_keys",
                                                               "wrong_key", "broken"};
  return kNames.at(static_cast<std::size_t>(handshake));
}

HandshakeMonitor::HandshakeMonitor(const SocketContext& context, void* socket)
    : socket_(socket), events_(zmq_socket(context.handle(), ZMQ_PAIR)) {
  static std::atomic<std::uint64_t> next{0};
  const std::string address =
      "inproc://tetrion.handshakes." + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
  const int no_bound = 0, no_linger = 0;
  // Connected before the first event: ZeroMQ's thread would wait for a reader that is not there.
  if (events_ == nullptr || zmq_setsockopt(events_, ZMQ_RCVHWM, &no_bound, sizeof(no_bound)) != 0 ||
      zmq_setsockopt(events_, ZMQ_LINGER, &no_linger, sizeof(no_linger)) != 0 ||
      zmq_socket_monitor(socket_, address.c_str(), kEvents) != 0 ||
      zmq_connect(events_, address.c_str()) != 0) {
    const std::string reason = zmq_strerror(zmq_errno());
    if (events_ != nullptr) zmq_close(events_);
    throw Error(ExitCode::kTryAgain,
                "cannot watch a socket's handshakes: " + reason + "; raise the open-files limit");
  }
}

HandshakeMonitor::~HandshakeMonitor() {
  zmq_socket_monitor(socket_, nullptr, 0);  // from now on nothing is written to `events_`
  zmq_close(events_);
}

std::optional<EndedHandshake> HandshakeMonitor::Next() {
  while (true) {
    if (held_ && !Closes(*held_)) return EndedHandshake{*std::exchange(held_, std::nullopt), ""};
    const std::optional<Event> event = ReceiveEvent(events_);
    if (!event) break;
    const std::optional<Handshake> failed = std::exchange(held_, Meaning(*event));
    const int fd = static_cast<int>(event->value);
    std::string peer = event->kind == ZMQ_EVENT_DISCONNECTED ? TakePeer(fd) : "";
    if (event->kind == ZMQ_EVENT_ACCEPTED) peers_[fd] = {PeerAddress(fd), empties_};
    if (failed) return EndedHandshake{*failed, std::move(peer)};
  }
  ++empties_;
  return std::nullopt;
}

std::string HandshakeMonitor::TakePeer(int fd) {
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return "";
  std::string address =
      found->second.asked_at < empties_ ? std::move(found->second.address) : std::string();
  peers_.erase(found);
  return address;
}

}  // namespace tetrion::wire
