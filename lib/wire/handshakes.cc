#include "lib/wire/handshakes.h"

#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::wire {
namespace {

constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

// An event's first frame: 16 bits of kind, 32 bits of value. The second, an address, says nothing
// about the peer.
std::optional<Handshake> Meaning(const std::uint8_t (&frame)[6]) {
  std::uint16_t event;
  std::uint32_t value;
  std::memcpy(&event, frame, sizeof(event));
  std::memcpy(&value, frame + sizeof(event), sizeof(value));
  switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return Handshake::kAccepted;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return Handshake::kUnknownKey;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      if (value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return Handshake::kNoKeys;
      if (value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC) return Handshake::kWrongKey;
      return Handshake::kBroken;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return Handshake::kBroken;
    default:
      return std::nullopt;  // the monitor itself ended
  }
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

std::optional<Handshake> HandshakeMonitor::Next() {
  std::uint8_t kind[6];
  while (zmq_recv(events_, kind, sizeof(kind), ZMQ_DONTWAIT) == sizeof(kind)) {
    char address[256];
    zmq_recv(events_, address, sizeof(address), ZMQ_DONTWAIT);
    if (const std::optional<Handshake> meaning = Meaning(kind)) return meaning;
  }
  return std::nullopt;
}

}  // namespace tetrion::wire
